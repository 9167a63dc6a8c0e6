from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.failure.outcome import Outcome
from bot.sandbox.sandbox import Sandbox
from bot.workers import toolchain
from bot.workers.process import Interrupted

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
    toolchain.keep(first)
    toolchain.seed(second)
    assert files(second) == {"cabc.cpp", "cabc.so"}
    assert (second / "ab" / "cabc.cpp").read_text(encoding="utf-8") == PROBE


def test_of_what_an_interpreter_left_no_link_is_followed_and_no_pipe_is_waited_for(tmp_path: Path) -> None:
    """It may be a stranger's: the engine reads with its own rights, and what it kept every program can read."""
    first, second, secret = tmp_path / "first", tmp_path / "second", tmp_path / "secret"
    secret.write_text("canary")
    for name in ("cabc", "cdef", "cghi"):
        compiled(first, name, PROBE)
    (first / "ab" / "cabc.so").unlink()
    (first / "ab" / "cabc.so").symlink_to(secret)
    (first / "de" / "cdef.cpp").unlink()
    os.mkfifo(first / "de" / "cdef.cpp")
    (first / "gh").rename(tmp_path / "elsewhere")
    (first / "gh").symlink_to(tmp_path / "elsewhere")
    toolchain.keep(first)
    toolchain.seed(second)
    assert files(second) == set()
    assert not any("canary" in path.read_text() for path in (tmp_path / "kept").rglob("*") if path.is_file())


def test_what_is_there_stays(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    compiled(first, "cabc", PROBE)
    compiled(second, "cabc", PROBE + "// mine\n")
    toolchain.keep(first)
    toolchain.seed(second)
    assert "mine" in (second / "ab" / "cabc.cpp").read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_costs_the_time_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCH_MINIFY_CACHE_DIR", str(tmp_path / "file"))
    compiled(tmp_path / "first", "cabc", PROBE)
    toolchain.keep(tmp_path / "first")
    toolchain.seed(tmp_path / "second")
    assert not (tmp_path / "second").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs a sandbox")
def test_an_interpreter_is_asked_once_and_by_a_process_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        toolchain,
        "_COMPILE",
        "import os, pathlib; place = pathlib.Path(os.environ['TORCHINDUCTOR_CACHE_DIR'], 'ab'); place.mkdir(); "
        f"(place / 'cabc.cpp').write_text({PROBE!r}); (place / 'cabc.so').write_bytes(b'x')",
    )
    (tmp_path / "scratch").mkdir()
    box = Sandbox(tmp_path / "scratch")
    toolchain.make(sys.executable, box, anew=False)
    toolchain.seed(tmp_path / "cache")
    assert files(tmp_path / "cache") == set()
    toolchain.make(sys.executable, box)
    toolchain.seed(tmp_path / "cache")
    assert files(tmp_path / "cache") == {"cabc.cpp", "cabc.so"}
    monkeypatch.setattr(toolchain, "run_process", None)  # not called again
    toolchain.make(sys.executable, box)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a sandbox")
def test_a_header_that_made_room_for_others_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with five interpreters one of them compiled it in each job."""
    monkeypatch.setattr(
        toolchain,
        "_COMPILE",
        "import os, pathlib; place = pathlib.Path(os.environ['TORCHINDUCTOR_CACHE_DIR'], 'torchinductor_program/precompiled_headers'); "
        "place.mkdir(parents=True); (place / 'c1.h').write_text('text'); (place / 'c1.h.gch').write_text('compiled')",
    )
    headers = tmp_path / "kept" / "headers"
    (tmp_path / "scratch").mkdir()
    toolchain.make(sys.executable, Sandbox(tmp_path / "scratch"))
    os.utime(headers / "c1.h.gch", (1, 1))
    toolchain.make(sys.executable, Sandbox(tmp_path / "scratch"))
    assert (headers / "c1.h.gch").stat().st_mtime == 1  # lent before in this job
    shutil.rmtree(tmp_path / "scratch" / "headers")
    toolchain.make(sys.executable, Sandbox(tmp_path / "scratch"))
    assert (headers / "c1.h.gch").stat().st_mtime > 1
    for number in range(2, 6):
        header(tmp_path / str(number), f"c{number}")
        toolchain.keep_headers(tmp_path / str(number))
    assert not (headers / "c1.h.gch").exists()
    shutil.rmtree(tmp_path / "scratch" / "headers")
    box = Sandbox(tmp_path / "scratch")
    toolchain.make(sys.executable, box)
    assert files(box.links["torchinductor_program/precompiled_headers"]) == {"c1.h", "c1.h.gch"}


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
    toolchain.keep(tmp_path / "first")
    libraries = {name for name in files(tmp_path / "first") if name.endswith(".so")}
    toolchain.seed(tmp_path / "second")
    assert {name for name in files(tmp_path / "second") if name.endswith(".so")} == libraries
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "second").rglob("*.so")}
    assert picked(tmp_path / "second") == answer
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "second").rglob("*.so")} == written


def header(cache: Path, name: str) -> Path:
    place = cache / "torchinductor_program" / "precompiled_headers"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.h").write_text("#include <torch.h>\n", encoding="utf-8")
    (place / f"{name}.h.gch").write_bytes(b"gpch")
    return place / f"{name}.h.gch"


def test_of_headers_the_newest_are_kept_and_no_link_is(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret", encoding="utf-8")
    for number in range(6):
        made = header(tmp_path / str(number), f"c{number}")
        os.utime(made, (number, number))
        assert set(toolchain.keep_headers(tmp_path / str(number))) == {made.name, made.with_suffix("").name}
        os.utime(tmp_path / "kept" / "headers" / made.name, (number, number))
    assert {path.name for path in (tmp_path / "kept" / "headers").glob("*.gch")} == {f"c{number}.h.gch" for number in (2, 3, 4, 5)}
    planted = header(tmp_path / "link", "clnk")
    planted.unlink()
    planted.symlink_to(tmp_path / "secret")
    assert toolchain.keep_headers(tmp_path / "link") == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a sandbox")
def test_a_process_in_the_sandbox_finds_the_header(tmp_path: Path) -> None:
    """It compiles, and precompiles nothing."""
    pytest.importorskip("torch")
    (tmp_path / "scratch").mkdir()
    (tmp_path / "cache").mkdir()
    box = Sandbox(tmp_path / "scratch")
    toolchain.make(sys.executable, box)
    place = box.links.get("torchinductor_program/precompiled_headers")
    if place is None:
        pytest.skip("this torch precompiles no header")
    lent = {path.name for path in place.iterdir()}
    assert any(name.endswith(".h.gch") for name in lent) or any(name.endswith(".h.pch") for name in lent)
    toolchain.seed(tmp_path / "cache")
    look = (
        "import os, tempfile, torch\n"
        "torch.compile(lambda x: torch.sigmoid(x) * 3)(torch.ones(8))\n"
        "from torch._inductor.codecache import _HEADER_DIR as place\n"
        "print([(name, os.path.islink(os.path.join(place, name))) for name in sorted(os.listdir(place)) if name != 'locks'])\n"
    )
    process = box.start(
        [sys.executable, "-c", look],
        cwd=tmp_path,
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")},
        write=(tmp_path / "cache",),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = process.communicate(timeout=100)[0].decode()
    process.end()
    assert process.returncode == 0, said
    assert ast.literal_eval(said.splitlines()[-1]) == [(name, True) for name in sorted(lent)]


def test_it_ends_where_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    box = Sandbox(tmp_path)
    began = time.monotonic()
    with pytest.raises(Interrupted):
        toolchain.make(sys.executable, box, wanted=lambda: time.monotonic() < began + 1)
    assert not list((tmp_path / "kept").rglob("*.json"))
    toolchain.make(sys.executable, box, anew=False, wanted=lambda: False)  # asks nothing


def test_a_job_waits_some_time_and_the_next_one_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def run_process(*_: object, wanted: Callable[[], bool], **__: object) -> Outcome:
        while wanted():
            if go_on.wait(0.01):
                return Outcome(status="ok")
        raise Interrupted

    monkeypatch.setattr(toolchain, "run_process", run_process)
    box = Sandbox(tmp_path)
    with toolchain.Maker(sys.executable, box) as made:
        began = time.monotonic()
        made.wait(0.2)
        assert 0.2 <= time.monotonic() - began < 5
        with pytest.raises(Interrupted):
            made.wait(100.0, lambda: False)
        assert made.worked_within(0.0)
    assert not list((tmp_path / "kept").rglob("*.json"))  # broken off with its job
    with toolchain.Maker(sys.executable, box) as made:
        go_on.set()
        made.wait(100.0)
    assert len(list((tmp_path / "kept").rglob("*.json"))) == 1
    monkeypatch.setattr(toolchain, "run_process", None)  # not called again
    with toolchain.Maker(sys.executable, box) as made:
        made.wait(100.0)
        assert made.worked_within(100.0)
        assert not made.worked_within(0.0)


def test_without_a_sandbox_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "run_process", None)
    with toolchain.Maker(sys.executable, Sandbox(tmp_path, on=False)) as made:
        made.wait(100.0)
        assert not made.worked_within(100.0)
