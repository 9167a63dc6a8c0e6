"""One request's part of a comment: what is in it, and what makes room for what."""

from __future__ import annotations

from typing import Any

import pytest

from bot.action.report.render.layout import fit
from bot.action.report.render.section import HEADING, REPRO, blocks, module_of
from bot.models.report import Download, Section, Stored
from bot.models.result import Timing
from tests.action.report import reports

MODULE = "class Repro(torch.nn.Module):\n    def forward(self, x):\n\n        return x"
SCRIPT = f"import torch\n\n{MODULE}\n\n\nRepro()(1)\n"


def section(**changes: Any) -> Section:
    return Section(request=reports.request(), result=reports.result(), repro=SCRIPT).model_copy(update=changes)


def told(part: Section, *, index: int = 0, of: int = 1, room: int = 60_000) -> str:
    return fit(blocks(part, index, of), room)


@pytest.mark.parametrize(
    ("repro", "module"),
    [(SCRIPT, MODULE), (MODULE, MODULE), ("import torch\n", None), ("", None), ("x = 1  # class Repro\n", None)],
)
def test_the_module_of_a_repro(repro: str, module: str | None) -> None:
    assert module_of(repro) == module


def test_one_of_several_is_numbered() -> None:
    assert told(section()).startswith("### Minimized")
    assert told(section(), index=1, of=2).startswith("### 2. Minimized")


def test_a_time_that_is_none_is_not_said() -> None:
    took = [told(section(result=reports.result(timing=Timing(total=total)))).splitlines()[0] for total in (0, 62, 1e9)]
    assert [", 1 min 02 s" in title for title in took] == [False, True, False]


def test_a_repro_is_shown_whole_or_its_module_or_where_it_is() -> None:
    held = section(download=Download(url="https://github.com/x/artifacts/1"), repro=SCRIPT + "# " + "x" * 3000)
    (block,) = (each for each in blocks(held, 0, 1) if each.rank[0] == REPRO)
    assert "x" * 3000 in block.within(10_000)
    less = block.within(1_000)
    assert MODULE in less
    assert "x" * 3000 not in less
    assert "`repro.py` in [the run's files](https://github.com/x/artifacts/1)" in block.within(200)
    assert MODULE not in block.within(200)
    assert block.within(10) == ""


def test_a_heading_comes_before_a_repro() -> None:
    ranks = [block.rank[0] for block in blocks(section(), 0, 1)]
    assert min(ranks) == HEADING < REPRO


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"result": None, "problem": "result.json is no plain file"}, "There is no usable result: `result.json is no plain file`"),
        ({"result": None}, "There is no result. The job may not have started"),
        ({"repro": None}, "Not repeated here: the result says minimized, but holds no repro that fails."),
        ({"unkept": "PUT: 422 no"}, "Not kept for good, which takes the secret `durable-token`: `PUT: 422 no`."),
        ({"repro_altered": True}, "What was verified is the script before that: as it stands here, it was not run."),
        ({"repro_altered": True}, "### Minimized, shown with changes"),
        ({"altered": True}, "Secrets or personal paths in the texts above were replaced."),
        ({"traceback": "Traceback\n  x"}, "<details><summary>Traceback</summary>"),
        ({"log": "the end"}, "<details><summary>The end of its log</summary>"),
        ({"request": reports.request(expected="E: no")}, "CI showed: `E: no`"),
        ({"request": reports.request(tests=("a.py::t", "b.py::t"))}, "2 tests fail in this way"),
        ({"download": Download(url="https://github.com/x", expires="2026-12-01")}, "until `2026-12-01`. GitHub requires a login."),
    ],
)
def test_what_is_said(changes: dict[str, Any], said: str) -> None:
    assert said in told(section(**changes))
    assert said not in told(section())


def test_an_exported_program_is_named_with_its_hash_and_where_it_stays() -> None:
    stored = Stored(name="exported_program.pt2", size=1234, sha256="ab" * 32, kept="https://github.com/x/kept")
    shown = told(section(files=(stored,), exported_text="graph()"))
    assert f"`exported_program.pt2`, 1,234 bytes, sha256 `{'ab' * 32}`" in shown
    assert "[for good](https://github.com/x/kept)" in shown
    assert "graph()" in shown
    assert "The exported program" not in told(section(exported_text="graph()"))
