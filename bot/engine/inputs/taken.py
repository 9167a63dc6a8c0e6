"""What an input was taken for."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.models.result import TakenAs

# The most bytes of text that are read from an input without a better bound.
MOST_BYTES = 32 * 2**20

ACCEPTED = """\
what X may be:
  a Python script                              run as it is
  repro.py, fx_graph_runnable*.py              a graph that PyTorch dumped: compiled again with its inputs
  minifier_launcher.py                         the same, for the levels dynamo, aot and aot_inductor; it is not run
  torch_compile_debug/, .../checkpoints        the newest of those scripts for each graph in the directory
  a TORCH_TRACE log or a directory of them,    the graphs in it: the one whose compilation failed, else all of them
    tl_out/ of tlparse, a .zip, .tar.gz, .gz     (--graph chooses)
  program.pt2 of torch.export.save             compiled, and packaged with AOTInductor
  an AOTInductor package                       only with its program inside
  a notebook (.ipynb)                          its code cells in order
  a text or an archive with one of these       a code block, an interpreter session; the one file
"""

_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def json_of(text: str) -> Any:
    """Parse the JSON `text`. Lone surrogates, which JSON can hold and no file can, become question marks. Raises ValueError or
    RecursionError if it cannot be read."""
    found = json.loads(text)
    return json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")) if _HALF.search(text) else found


class NotUnderstood(Exception):
    """Nothing that can be run was found in the input; the message says what it looks like, and what is needed instead."""


@dataclass(frozen=True)
class DumpedGraph:
    """One compiled graph of an input that may hold several, as the script that PyTorch dumped.

    `name` is its compile id, after its rank if there are ranks, and with a number after a dot if a compilation has several graphs. `failed`
    is what its compilation said, if it failed; `unfinished` means that nothing says how it ended. `beside` is the directory that the script
    was in, `ended` is what is known of a graph that did neither.
    """

    name: str
    text: str
    failed: str = ""
    unfinished: bool = False
    beside: Path | None = None
    ended: str = "compiled"

    @property
    def of(self) -> str:
        """The compile id without the number."""
        return re.sub(r"[.][0-9]+\Z", "", self.name)

    @property
    def said(self) -> str:
        """How its compilation ended, in a few words."""
        return "failed" if self.failed else "did not end" if self.unfinished else self.ended


@dataclass(frozen=True)
class Taken:
    """An input as a Python program: the `text` of a script, or None if the input already is one.

    `detail` says in one line what was found, `notes` what else its owner should know. `read` holds the other files and directories that the
    program reads. `wrong_numbers`: it was dumped for its numbers. `then` is a script to take if this one passes: a program that compiles
    may fail to be packaged, and what a graph computes without using it is not compiled again. `otherwise` is one that compares the compiled
    code of a package with its program, if both pass.
    """

    taken_as: TakenAs
    detail: str
    text: str | None = None
    notes: tuple[str, ...] = ()
    read: tuple[Path, ...] = ()
    wrong_numbers: bool = False
    then: str = ""
    otherwise: str = ""


@dataclass(frozen=True)
class Place:
    """Where an input is, and what goes with it.

    `scratch` is an empty directory for what has to be unpacked. `graph` is the one that was asked for (None: whichever failed), `inputs` a
    file of inputs for an exported program, `torch` the version of the user's torch, empty if it is not known.
    """

    path: Path
    scratch: Path
    graph: str | None = None
    inputs: Path | None = None
    torch: str = ""
