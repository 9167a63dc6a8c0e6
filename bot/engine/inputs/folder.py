"""Directories: of structured logs, of tlparse's output, of PyTorch's debug output, of its minifier."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bot.engine.inputs import archive, dump, trace
from bot.engine.inputs.bodies import with_bodies
from bot.engine.inputs.graphs import Held
from bot.engine.inputs.taken import MOST_BYTES, DumpedGraph, NotUnderstood

MOST_FILES = 20_000
_OF_TLPARSE = re.compile(r"fx_graph_runnable_(?P<number>\d+)\.txt\Z")
_FAILED = re.compile(r"Failure Exception: <pre>(.*?)</pre>.*?Failure Reason: <pre>(.*?)</pre>", re.S)
_RANK = re.compile(r"rank_(\d+)")
_OF_PROGRAMS = (".py", ".ipynb", ".pt2")
# What is known of a graph that PyTorch dumped because it failed.
_OF_MINIFIER = "dumped for PyTorch's minifier"
# The name of a run, which is ignored so that the same graph of several runs is recognized.
_OF_A_RUN = re.compile(r"run_[0-9_]+-pid_\d+")


def read(root: Path) -> Held:
    """The graphs below the directory `root`. Raises NotUnderstood if it holds none."""
    files = list(_files(root))
    logs = [path for path in files if path.suffix in (".log", ".txt", "") and trace.is_trace(head(path))]
    scripts = [path for path in files if path.suffix == ".py" and dump.is_dump(_text(path))]
    # torch 2.13 and later put a log next to what TORCH_COMPILE_DEBUG dumps: the log has every run into that directory, the dumps are the
    # newest's
    if logs and not (scripts and all(path.parent.name == "tlparse" and path.name.startswith("dedicated_log") for path in logs)):
        return of_logs(logs)
    # tlparse keeps a copy of the log that it read
    if parsed := [path for path in files if _OF_TLPARSE.match(path.name)]:
        return _of_tlparse(parsed)
    if scripts:
        return _of_scripts(root, scripts)
    suffixes = sorted({path.suffix or "no suffix" for path in files})
    shown = ", ".join(suffixes[:6]) or "nothing"
    hint = "; give the one that fails" if {*_OF_PROGRAMS} & {*suffixes} else ""
    raise NotUnderstood(f"a directory without a structured log and without a script dumped by PyTorch (it holds files with: {shown}){hint}")


def programs(root: Path) -> list[Path]:
    """The files below the directory `root` with the suffix of a program, except those that macOS adds for each file."""
    return [path for path in _files(root) if path.suffix in _OF_PROGRAMS and not path.name.startswith("._")]


def archives(root: Path) -> list[Path]:
    """The archives below the directory `root`, except those that torch wrote."""
    return [path for path in _files(root) if archive.is_archive(path) and not archive.is_of_torch(path)]


def head(path: Path, size: int = 65536) -> bytes:
    """The first `size` bytes of the file `path`; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


def text_of(path: Path) -> str:
    """The dumped script in the file `path`, with the bodies of its operations if those are printed next to it."""
    return with_bodies(_text(path), _text(path.with_name("fx_graph_readable.py")))


def of_logs(logs: list[Path]) -> Held:
    """The graphs of structured `logs`, one for each process, which may be a rank. Raises NotUnderstood if there is no graph in them."""
    graphs: list[DumpedGraph] = []
    failures: dict[str, str] = {}
    left_out = 0
    ranks = 0
    for path in logs:
        with path.open("rb") as file:
            found = trace.read(file)
        rank = _RANK.search(path.name) or _RANK.fullmatch(path.parent.name)
        ranks += bool(found.records)
        # a record has its rank only once there is a process group, and may say 0 in every process
        named = f"rank{int(rank[1])}:" if rank else f"{path.stem[-8:]}:"
        named = named if len(logs) > 1 else ""
        graphs += [replace(graph, name=_with_rank(graph.name, named)) for graph in found.graphs]
        failures |= {_with_rank(name, named): said for name, said in found.failures.items()}
        left_out += found.left_out
    what = "a trace" if ranks == 1 else f"traces of {ranks} processes"
    if failures and not any(graph.failed for graph in graphs):
        name, said = next(iter(failures.items()))
        raise NotUnderstood(
            f"{what}, in which compilation {name} failed before there was a graph ({said}): a trace does not hold the program;"
            " give the script"
        )
    if not graphs:
        raise NotUnderstood(
            f"{what} without a graph: no artifact fx_graph_runnable is in it; was it cut off, or made by a torch before 2.6?"
        )
    notes = (f"{left_out} graphs were left out: too many, or too large",) if left_out else ()
    return Held("trace", what, tuple(graphs), notes)


def _with_rank(name: str, rank: str) -> str:
    return rank + re.sub(r"\Arank\d+:", "", name) if rank else name


def _of_tlparse(files: list[Path]) -> Held:
    """What tlparse wrote: a directory for each compilation, with its files numbered in the order of the log."""
    graphs = []

    def number(path: Path) -> int:
        found = _OF_TLPARSE.match(path.name)
        return int(found["number"]) if found else 0

    for path in sorted(files, key=lambda path: (str(path.parent.parent), number(path))):
        beside = [other.name for other in path.parent.iterdir()]
        last = not any(_OF_TLPARSE.match(name) and number(path.parent / name) > number(path) for name in beside)
        failed = _failure(path.parent) if last else ""
        done = any(name.startswith("inductor_output_code") for name in beside)
        graphs.append(DumpedGraph(_tlparse_id(path), _text(path), failed, unfinished=last and not done and not failed))
    return Held("trace", "an output of tlparse", tuple(_numbered(graphs)))


def _tlparse_id(path: Path) -> str:
    """`0/0` for a directory `-_0_0_0` (compiled autograd, frame, compile, attempt), with the rank that tlparse puts above it."""
    parts = path.parent.name.split("_")
    name = "/".join(parts[-3:-1]) if len(parts) >= 3 else path.parent.name
    rank = _RANK.search(path.parent.parent.name)
    return f"rank{int(rank[1])}:{name}" if rank else name


def _failure(directory: Path) -> str:
    """What the metrics page of a compilation says about its failure."""
    for page in sorted(directory.glob("*compilation_metrics*.html")):
        if found := _FAILED.search(_text(page)):
            return ": ".join(html.unescape(" ".join(said.split()))[:200] for said in found.groups() if said)
    return ""


def _numbered(graphs: list[DumpedGraph]) -> Iterator[DumpedGraph]:
    counts: dict[str, int] = {}
    for graph in graphs:
        counts[graph.name] = counts.get(graph.name, 0) + 1
    seen: dict[str, int] = {}
    for graph in graphs:
        seen[graph.name] = seen.get(graph.name, 0) + 1
        yield graph if counts[graph.name] == 1 else replace(graph, name=f"{graph.name}.{seen[graph.name]}")


def _of_scripts(root: Path, scripts: list[Path]) -> Held:
    """Scripts that PyTorch dumped into a debug directory, or into a minifier's: the newest one of each graph."""
    newest: dict[str, Path] = {}
    for path in sorted(scripts, key=lambda path: path.stat().st_mtime_ns):
        newest[_graph_of(path.relative_to(root))] = path
    launchers = {path.parent for path in scripts if path.name == "minifier_launcher.py"}
    graphs = []
    # a launcher has what failed; a repro next to it is the last that PyTorch's minifier made of it
    for name, path in sorted(newest.items(), key=lambda item: item[1].name != "minifier_launcher.py"):
        if (path.parent.name == "isolate" and launchers) or (path.parent.name == "checkpoints" and path.parent.parent in launchers):
            continue  # a query of PyTorch's minifier, which may have another failure
        if path.name == "fx_graph_runnable.py":
            compiled = (path.parent / "output_code.py").exists()
            # that its code was written does not mean that it compiled
            graphs.append(DumpedGraph(name, text_of(path), unfinished=not compiled, beside=path.parent, ended="has its code"))
        else:
            graphs.append(DumpedGraph(name, text_of(path), _OF_MINIFIER, beside=path.parent))
    return Held("debug_dir", "a debug directory of PyTorch's", tuple(graphs))


def _graph_of(path: Path) -> str:
    """The name of a graph, the same in every run."""
    parts = [part for part in path.parts[:-1] if not _OF_A_RUN.fullmatch(part) and part not in ("torchinductor", "torch_compile_debug")]
    if path.name == "fx_graph_runnable.py":
        return "/".join(parts) or path.stem
    return "/".join([*parts, path.stem]) if path.name in ("minifier_launcher.py", "repro.py") else "/".join([*parts, "checkpoint"])


def _files(root: Path) -> Iterator[Path]:
    """Plain files below a directory, without following links. Raises NotUnderstood if there are too many."""
    count = 0
    for directory, names, files in os.walk(root):
        names.sort()
        for name in sorted(files):
            count += 1
            if count > MOST_FILES:
                raise NotUnderstood(f"a directory of more than {MOST_FILES:,} files: name the one that is meant")
            path = Path(directory, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _text(path: Path) -> str:
    return head(path, MOST_BYTES).decode("utf-8", "replace")
