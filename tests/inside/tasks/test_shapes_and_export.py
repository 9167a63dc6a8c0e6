"""What the values inside a script's `Repro.forward` are."""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bot.action.archives import packed  # noqa: E402
from bot.action.report.render.local import unpacking  # noqa: E402
from bot.inside.protocol import Question  # noqa: E402
from bot.inside.tasks.shapes_and_export import meta  # noqa: E402
from bot.models.result import Result  # noqa: E402
from bot.workers.pool import Pool  # noqa: E402

SCRIPT = """
    import torch

    class Repro(torch.nn.Module):
        def forward(self, x, *, scale=2):
            y = x.t() * scale
            n = y.shape[0]
            pair = y.sum(), [n]
            return pair

    x = torch.ones(2, 3, requires_grad=True)
    compiled = torch.compile(Repro(), backend="no such backend")
    compiled(x, scale=3)
    compiled(x.t())
"""


def ask(pool: Pool, task: str, body: str, **more: Any) -> tuple[str, str, dict[str, Any]]:
    outcome, facts = pool.ask(Question(textwrap.dedent(body), task, 60.0, **more))
    return outcome.status, outcome.text, facts


def test_a_long_forward_is_described_like_a_short_one(pool: Pool) -> None:
    # in a long one values are deleted on the way
    long = SCRIPT.replace("            pair =", "\n".join(f"            z{i} = y" for i in range(30)) + "\n            pair =")
    short, found = (ask(pool, "shapes", text)[2]["values"] for text in (SCRIPT, long))
    assert {name: value for name, value in found.items() if name[0] != "z"} == short
    assert found["z29"] == short["y"]


@pytest.mark.parametrize("more", [0, 30])
def test_what_a_script_deletes_itself_is_described(pool: Pool, more: int) -> None:
    """What runs out of memory frees its values; once none of those followed the sizes."""
    deleting = SCRIPT.replace(
        "            return pair", "            del y, n\n" + "            z = pair\n" * more + "            return pair"
    )
    short, found = (ask(pool, "shapes", text)[2]["values"] for text in (SCRIPT, deleting))
    assert {name: value for name, value in found.items() if name != "z"} == short


def test_locals_and_the_result_of_the_first_call(pool: Pool) -> None:
    status, text, facts = ask(pool, "shapes", SCRIPT)
    assert status == "ok", text
    values = facts["values"]
    tensor = {"kind": "tensor", "dtype": "float32", "device": "cpu"}
    assert values["x"] == {**tensor, "shape": [2, 3], "stride": [3, 1]}
    assert values["y"] == {**tensor, "shape": [3, 2], "stride": [1, 3]}
    assert values["n"] == {"kind": "int"}
    assert values["return"] == values["pair"]
    assert values["pair"]["items"][1] == {"kind": "other", "items": [{"kind": "int"}]}
    assert set(values) == {"x", "scale", "y", "n", "pair", "return"}


def test_an_illegal_program_is_told_as_such(pool: Pool) -> None:
    status, text, _ = ask(pool, "shapes", SCRIPT.replace("x.t()", "x.view(7)"))
    assert status == "raised"
    assert "shape '[7]' is invalid" in text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, {"kind": "bool"}),
        (1, {"kind": "int"}),
        (1.5, {"kind": "float"}),
        (None, {"kind": "other"}),
        ("text", {"kind": "other"}),
        ((), {"kind": "other", "items": []}),
    ],
)
def test_what_is_no_tensor(value: Any, expected: dict[str, Any]) -> None:
    assert meta(value) == expected


def test_tensors_without_strides() -> None:
    sparse = torch.eye(2).to_sparse()
    assert meta(sparse) == {"kind": "tensor", "shape": [2, 2], "stride": [], "dtype": "float32", "device": "cpu"}
    assert meta(torch.empty(2, 0, dtype=torch.bfloat16, device="meta"))["device"] == "meta"


def test_export_saves_the_module_with_its_inputs(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "saved.pt2"
    status, text, _ = ask(pool, "export", SCRIPT, save=str(path))
    assert status == "ok", text
    program = torch.export.load(path)
    args, kwargs = program.example_inputs
    assert ([tuple(arg.shape) for arg in args], kwargs) == ([(2, 3)], {"scale": 3})
    assert torch.equal(program.module()(torch.ones(2, 3), scale=3)[0], torch.tensor(18.0))
    text = path.with_suffix(".txt").read_text(encoding="utf-8")
    assert "File: repro.py" in text
    assert "torch-minify-" not in text
    assert text.startswith("ExportedProgram:")
    assert "def forward(self, " in text


BRANCH = """
import torch

class Repro(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (x,))

torch.compile(Repro())(torch.ones(3))
"""


@pytest.mark.parametrize("body", [SCRIPT, BRANCH])
def test_a_saved_program_does_not_say_where_it_was_made(pool: Pool, tmp_path: Path, body: str) -> None:
    path = tmp_path / "saved.pt2"
    status, text, _ = ask(pool, "export", body, save=str(path))
    assert status == "ok", text
    with zipfile.ZipFile(path) as archive:
        held = b"".join(archive.read(name) for name in archive.namelist())
    assert b"stack_trace" not in held
    for place in (str(tmp_path), tempfile.gettempdir(), sys.prefix, os.path.expanduser("~") + "/", os.getcwd()):
        assert place.encode() not in held


def test_a_small_program_is_loaded_from_the_text_in_a_comment(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "saved.pt2"
    status, text, _ = ask(pool, "export", SCRIPT, save=str(path))
    assert status == "ok", text
    program = packed(path.read_bytes())
    assert program is not None
    lines = unpacking(program, Result(status="minimized"))
    loaded: dict[str, Any] = {}
    exec(lines.rpartition("\n")[0], loaded)  # without the call, which compiles
    args, kwargs = loaded["program"].example_inputs
    assert torch.equal(loaded["program"].module()(*args, **kwargs)[0], torch.export.load(path).module()(*args, **kwargs)[0])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (SCRIPT.replace("y.shape[0]", "int(y.sum())"), "int"),
        ("import torch\ntorch.compile(torch.relu)(torch.ones(2))", "does not call Repro"),
        (SCRIPT.replace("x.t()", "x.view(7)"), "shape '[7]' is invalid"),
    ],
)
def test_what_cannot_be_exported_says_why(pool: Pool, tmp_path: Path, body: str, words: str) -> None:
    status, text, _ = ask(pool, "export", body, save=str(tmp_path / "saved.pt2"))
    assert status == "raised"
    assert words in text
    assert not (tmp_path / "saved.pt2").exists()
