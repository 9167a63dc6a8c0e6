"""The variables that a compiling process is started with."""

from __future__ import annotations

import os
from pathlib import Path

from bot.workers import environment

ROOT = Path(environment.__file__).parents[2]


def test_a_worker_has_the_users_environment_and_no_graph_cache(tmp_path: Path) -> None:
    env = environment.of_workers(tmp_path / "compile")
    assert env["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "compile")
    assert env["TORCHINDUCTOR_FX_GRAPH_CACHE"] == env["TORCHINDUCTOR_AUTOGRAD_CACHE"] == "0"
    assert env["PATH"] == os.environ["PATH"]


def test_a_proof_has_what_it_is_given_without_this_package(tmp_path: Path) -> None:
    env = environment.of_proof({"A": "b", "PYTHONPATH": os.pathsep.join(["", str(ROOT), "/mine"])}, tmp_path)
    assert (env["A"], env["PYTHONPATH"]) == ("b", "/mine")
    assert "PYTHONPATH" not in environment.of_proof({"PYTHONPATH": str(ROOT)}, tmp_path)
    assert "PYTHONHASHSEED" not in env, "a stranger's run does not fix it"


def test_workers_and_proof_compile_alike(tmp_path: Path) -> None:
    worker, proof = environment.of_workers(tmp_path), environment.of_proof(os.environ, tmp_path)
    alike = {
        "TORCHINDUCTOR_CACHE_DIR",
        "TORCHINDUCTOR_FX_GRAPH_CACHE",
        "TORCHINDUCTOR_AUTOGRAD_CACHE",
        "TORCHDYNAMO_VERBOSE",
        "PYTHONFAULTHANDLER",
    }
    assert {name: worker[name] for name in alike} == {name: proof[name] for name in alike}


def test_graph_caches_are_off_unless_they_are_to_be_as_by_default(tmp_path: Path) -> None:
    caches = ("TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE")
    assert [environment.of_proof({}, tmp_path)[name] for name in caches] == ["0", "0"]
    assert not environment.of_proof({}, tmp_path, graph_caches=True).keys() & set(caches)
