"""What is said beside a repro, while it is proven and after that."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import pytest

from bot.engine import job
from bot.engine.job import Job
from bot.engine.options import Options
from bot.engine.proof import Prover
from bot.engine.state import Proof, SearchResult
from bot.engine.target import Target
from bot.engine.workspace import Workspace
from bot.models.result import Result, VerificationFacts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
# an error of torch's own: the graph fails alone
PROGRAM = Path(__file__).parents[2] / "examples" / "aot.py"


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, room: int) -> Result:
    """The job on a machine where so many fresh processes run at a time."""
    pytest.importorskip("torch")
    script = Path(shutil.copy(PROGRAM, tmp_path))
    monkeypatch.setattr(job, "at_once", lambda _signature: room)
    result = Job(Options(Target(script, None, ()), sys.executable, tmp_path / "out", verify_runs=1)).run()
    assert result is not None
    return result


def hash_of(tmp_path: Path, name: str) -> str:
    return hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest()


@pytest.mark.parametrize("room", [pytest.param(1, id="after the proof", marks=pytest.mark.all), pytest.param(4, id="beside it")])
def test_it_is_the_same_whenever_it_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    before: list[Result | None] = []
    publish = Workspace.publish

    def watched(space: Workspace, *, exported: bool, kernel: str | None) -> None:
        before.append(space.earlier())
        publish(space, exported=exported, kernel=kernel)

    monkeypatch.setattr(Workspace, "publish", watched)
    result = run(tmp_path, monkeypatch, room=room)
    # what is proven stands there with its repro, whatever becomes of its explanation
    [told] = before
    assert told is not None
    assert (told.status, told.ended_by, told.reason) == ("minimized", "fixed_point", None)
    assert told.files.sha256 == {"repro.py": hash_of(tmp_path, "repro.py")}
    names = {"repro.py", "exported_program.pt2", "exported_program.txt"}
    assert result.files.sha256 == {name: hash_of(tmp_path, name) for name in names}
    assert (result.status, result.reduction.ops_after) == ("minimized", 1)
    assert result.exported_program is not None
    assert result.files.exported_program is not None
    assert (tmp_path / "out" / result.files.exported_program).is_file()
    assert result.timing.evidence > 0


def test_a_disk_that_is_full_for_a_moment_costs_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save, refused = Workspace.save, []

    def full_once(space: Workspace, result: Result) -> None:
        if result.status == "minimized" and not refused:
            refused.append(result)
            raise OSError(28, "No space left on device")
        save(space, result)

    monkeypatch.setattr(Workspace, "save", full_once)
    result = run(tmp_path, monkeypatch, room=4)
    assert refused
    assert (result.status, result.files.exported_program) == ("minimized", "exported_program.pt2")


def test_what_is_not_proven_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def proof(_self: Prover, found: SearchResult, runs: int) -> Proof:
        return Proof(found.final(), VerificationFacts(runs=runs, same=0, eager="passes"), ("run 1: did not fail",))

    monkeypatch.setattr(Prover, "proof", proof)
    monkeypatch.setattr(Prover, "latest", lambda *_: None)
    result = run(tmp_path, monkeypatch, room=4)
    assert (result.status, result.exported_program, result.files.exported_program) == ("error", None, None)
    assert not list((tmp_path / "out").glob("exported_program*"))
