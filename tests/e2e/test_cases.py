"""The programs themselves, without us: eager passes, compiled fails as its row says. When PyTorch mends one, this says so."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.e2e.e2e_catalog import HEALTHY, ROWS, Row
from tests.e2e.e2e_harness import CASES, ROOT, Finished, environment, run

pytestmark = [pytest.mark.e2e, pytest.mark.all, pytest.mark.timeout(600)]
CONTROL = Path(__file__).parent / "control.py"
UNIQUE = {row.case: row for row in reversed(ROWS)}


def control(mode: str, script: Path, tmp: Path) -> Finished:
    argv = [sys.executable, str(CONTROL), mode, str(script)]
    return run(argv, cwd=tmp, env=environment(COLD, ours=False), limit=200)


def plain(script: Path, tmp: Path, limit: float = 200, env: tuple[tuple[str, str], ...] = ()) -> Finished:
    return run([sys.executable, str(script)], cwd=tmp, env=environment({**COLD, **dict(env)}, ours=False), limit=limit)


COLD = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0", "TORCHINDUCTOR_COMPILE_THREADS": "1"}


def compiled_fails(row: Row, script: Path, tmp: Path) -> None:
    if row.kind == "hang":
        with pytest.raises(AssertionError, match="still running after"):
            plain(script, tmp, limit=60)
        return
    compiled = plain(script, tmp, env=row.env)
    if row.kind == "crash":
        assert compiled.status < 0, compiled.text[-2000:]
    elif row.original is None:
        assert compiled.status == 0, compiled.text[-2000:]
        compared = control("numbers", script, tmp)
        assert compared.status == 1
        assert "not close" in compared.err, compared.text[-2000:]
    else:
        assert compiled.status == 1, compiled.text[-2000:]
        assert re.search(row.original, compiled.err), compiled.text[-2000:]


@pytest.mark.parametrize("row", UNIQUE.values(), ids=list(UNIQUE))
def test_fails_compiled_alone(row: Row, tmp_path: Path) -> None:
    script = CASES / f"{row.case}.py"
    if row.kind != "no_raise":
        eager = control("eager", script, tmp_path)
        if row.mended_here and "fails in eager" in row.mended_here.reason:
            assert eager.status == 1, eager.text[-2000:]
            return
        assert eager.status == 0, eager.text[-2000:]
    compiled_fails(row, script, tmp_path)


@pytest.mark.parametrize("case", sorted({case for case, _, _ in HEALTHY}))
def test_healthy_is_healthy(case: str, tmp_path: Path) -> None:
    for mode in ("eager", "numbers"):
        ended = control(mode, CASES / f"{case}.py", tmp_path)
        assert ended.status == 0, ended.text[-2000:]


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_example_fails_compiled_alone(example: str, tmp_path: Path) -> None:
    script = ROOT / "examples" / example
    assert control("eager", script, tmp_path).status == 0
    ended = plain(script, tmp_path)
    assert ended.status != 0 or control("numbers", script, tmp_path).status == 1, "it neither fails nor computes wrong numbers"


def test_every_case_is_used() -> None:
    """A program that neither a row nor a test names is tested by nothing."""
    named = {row.case for row in ROWS} | {case for case, _, _ in HEALTHY}
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    cases = {path.stem for path in CASES.glob("*.py")}
    assert named <= cases
    assert {case for case in cases - named if f'"{case}.py"' not in tests} == set()
