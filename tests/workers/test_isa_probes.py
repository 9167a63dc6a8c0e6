from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bot.sandbox.sandbox import Sandbox
from bot.workers import isa_probes

PROBE = 'extern "C" void __avx_chk_kernel() {}\n'


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_MINIFY_CACHE_DIR", str(tmp_path / "kept"))


def compiled(cache: Path, name: str, text: str, library: bool = True) -> None:
    place = cache / name[1:3]
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.cpp").write_text(text, encoding="utf-8")
    if library:
        (place / f"{name}.so").write_bytes(b"\x7fELF")


def files(cache: Path) -> set[str]:
    return {path.name for path in cache.rglob("*") if path.is_file()}


def test_probes_alone_go_from_one_directory_to_the_next(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    compiled(first, "cabc", PROBE)
    compiled(first, "cxyz", 'extern "C" void kernel(float* out) { out[0] = 1; }\n')
    compiled(first, "cdef", PROBE, library=False)  # the compiler could not
    compiled(first, "clng", PROBE + "//" + "a" * 5000)
    isa_probes.keep(first)
    isa_probes.seed(second)
    assert files(second) == {"cabc.cpp", "cabc.so"}
    assert (second / "ab" / "cabc.cpp").read_text(encoding="utf-8") == PROBE


def test_what_is_there_stays(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    compiled(first, "cabc", PROBE)
    compiled(second, "cabc", PROBE + "// mine\n")
    isa_probes.keep(first)
    isa_probes.seed(second)
    assert "mine" in (second / "ab" / "cabc.cpp").read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_costs_the_time_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCH_MINIFY_CACHE_DIR", str(tmp_path / "file"))
    compiled(tmp_path / "first", "cabc", PROBE)
    isa_probes.keep(tmp_path / "first")
    isa_probes.seed(tmp_path / "second")
    assert not (tmp_path / "second").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs a sandbox")
def test_an_interpreter_is_asked_once_and_by_a_process_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        isa_probes,
        "_PICK",
        "import os, pathlib; place = pathlib.Path(os.environ['TORCHINDUCTOR_CACHE_DIR'], 'ab'); place.mkdir(); "
        f"(place / 'cabc.cpp').write_text({PROBE!r}); (place / 'cabc.so').write_bytes(b'x')",
    )
    (tmp_path / "scratch").mkdir()
    box = Sandbox(tmp_path / "scratch")
    isa_probes.make(sys.executable, box)
    isa_probes.seed(tmp_path / "cache")
    assert files(tmp_path / "cache") == {"cabc.cpp", "cabc.so"}
    monkeypatch.setattr(isa_probes, "run_process", None)  # not called again
    isa_probes.make(sys.executable, box)


@pytest.mark.all
@pytest.mark.slow
def test_inductor_finds_its_probes_again(tmp_path: Path) -> None:
    """A process with the kept probes answers as one without, and compiles none of them anew."""
    pytest.importorskip("torch")
    code = "from torch._inductor.cpu_vec_isa import pick_vec_isa; print(pick_vec_isa())"

    def picked(cache: Path, compiler: str = "") -> str:
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TORCHINDUCTOR_CACHE_DIR": str(cache)} | ({"CXX": compiler} if compiler else {})
        return subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout

    answer = picked(tmp_path / "first")
    isa_probes.keep(tmp_path / "first")
    libraries = {name for name in files(tmp_path / "first") if name.endswith(".so")}
    isa_probes.seed(tmp_path / "second")
    assert {name for name in files(tmp_path / "second") if name.endswith(".so")} == libraries
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "second").rglob("*.so")}
    assert picked(tmp_path / "second") == answer
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "second").rglob("*.so")} == written
