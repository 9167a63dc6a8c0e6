"""What children share in the cache directory, with a compiler that counts how often it is asked, and what not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("torch")
from torch._inductor import codecache, cpp_builder, cpu_vec_isa

from bot.inside import cache


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def asked(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    commands: list[str] = []

    def run(cmd_line: str, cwd: str) -> None:
        commands.append(cmd_line)
        words = cmd_line.split()
        Path(words[words.index("-o") + 1]).write_text(f"answer {len(commands)}", encoding="utf-8")

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(directory))
    monkeypatch.setattr(cpp_builder, "_run_compile_cmd", run)
    cache.remember_compiled()
    return commands


def ask(directory: Path, text: str, flags: str = "-E -P") -> str:
    directory.mkdir()
    (directory / "header.hpp").write_text(text, encoding="utf-8")
    cpp_builder._run_compile_cmd(
        f"g++ {directory}/header.hpp -O3 {flags} -include {directory.parent}/precompiled.h -o {directory}/header.i", str(directory)
    )
    return (directory / "header.i").read_text(encoding="utf-8")


def test_the_same_header_is_preprocessed_once(asked: list[str], tmp_path: Path) -> None:
    assert ask(tmp_path / "a", "#include <one.h>") == ask(tmp_path / "b", "#include <one.h>") == "answer 1"
    assert len(asked) == 1


def test_another_header_or_another_flag_is_asked_for(asked: list[str], tmp_path: Path) -> None:
    assert ask(tmp_path / "a", "#include <one.h>") == "answer 1"
    assert ask(tmp_path / "b", "#include <two.h>") == "answer 2"
    assert ask(tmp_path / "c", "#include <one.h>", "-E -P -DMORE") == "answer 3"


def test_objects_are_kept_and_libraries_are_not(asked: list[str], tmp_path: Path) -> None:
    assert ask(tmp_path / "a", "int x;", "-c") == ask(tmp_path / "b", "int x;", "-c") == "answer 1"
    assert ask(tmp_path / "c", "int y;", "-c") == "answer 2"
    places = [tmp_path / "beside", tmp_path / "elsewhere"]
    assert {ask(place, f"// of {place}/other.cpp", "-c") for place in places} == {"answer 3"}
    assert ask(tmp_path / "d", "int x;", "-shared") == "answer 4"
    assert ask(tmp_path / "e", "int x;", "-shared") == "answer 5"


def test_a_cache_that_cannot_be_written_costs_nothing_else(directory: Path, asked: list[str], tmp_path: Path) -> None:
    directory.touch()  # no directory
    assert ask(tmp_path / "a", "#include <one.h>") == "answer 1"
    assert ask(tmp_path / "b", "#include <one.h>") == "answer 2"


class Killed(BaseException):
    """Stands for a signal."""


def half(_: object, target: str) -> None:
    Path(target).write_text("ans", encoding="utf-8")
    raise Killed


@pytest.mark.parametrize("flags", ["-shared", "-c"])
def test_a_kill_while_a_file_is_written_leaves_no_half_of_it(
    directory: Path, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    """Inductor takes what is there without a look at it."""

    def cut(cmd_line: str, cwd: str) -> None:
        words = cmd_line.split()
        half(None, words[words.index("-o") + 1])

    monkeypatch.setattr(cpp_builder, "_run_compile_cmd", cut)
    cache.remember_compiled()
    with pytest.raises(Killed):
        ask(tmp_path / "a", "int x;", flags)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["header.hpp"]


def test_a_kill_while_a_kept_file_is_copied_leaves_no_half_of_it(asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(tmp_path / "a", "int x;", "-c")
    monkeypatch.setattr(cache.shutil, "copyfile", half)
    with pytest.raises(Killed):
        ask(tmp_path / "b", "int x;", "-c")
    assert not (tmp_path / "b" / "header.i").exists()


def test_a_device_is_written_to_as_it_is(asked: list[str], tmp_path: Path) -> None:
    cpp_builder._run_compile_cmd(f"g++ {tmp_path}/main.cpp -o /dev/null", str(tmp_path))
    assert asked[0].endswith("-o /dev/null")
    assert not Path("/dev/null").is_file()


def test_packages_of_two_children_lie_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "shared")
    monkeypatch.setattr(codecache.AotCodeCompiler, "compile", lambda name: (name, os.environ["TORCHINDUCTOR_CACHE_DIR"]))
    cache.packages_apart(str(tmp_path))
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "shared"  # kernels of torch.compile are written once and only read
    assert codecache.AotCodeCompiler.compile("model") == ("model", str(tmp_path / "cache"))


@pytest.mark.parametrize(("works", "times"), [(True, 1), (False, 2)])
def test_instructions_that_work_are_probed_once(monkeypatch: pytest.MonkeyPatch, directory: Path, works: bool, times: int) -> None:
    probed: list[str] = []

    def check(self: cpu_vec_isa.VecISA, code: str) -> bool:
        probed.append(f"{self} {code}")
        return works

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(directory))
    monkeypatch.setattr(cpu_vec_isa.VecISA, "check_build", check)
    cache.remember_instructions()
    for code in ("one", "two"):
        assert [cpu_vec_isa.VecAVX2().check_build(code) for _ in range(2)] == [works, works]
    assert probed == ["avx2 one"] * times + ["avx2 two"] * times


def test_headers_that_come_later_are_found_and_what_is_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "tmp/torchinductor_program/precompiled_headers"
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    cache.link_headers(str(tmp_path / "kept"))  # none yet
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/one.h").write_text("kept", encoding="utf-8")
    cache.link_headers(str(tmp_path / "kept"))
    assert (place / "one.h").read_text(encoding="utf-8") == "kept"
    (tmp_path / "kept/two.h").write_text("kept", encoding="utf-8")
    (place / "two.h").write_text("own", encoding="utf-8")
    (tmp_path / "kept/three.h").write_text("kept", encoding="utf-8")
    cache.link_headers(str(tmp_path / "kept"))
    assert [(place / name).read_text(encoding="utf-8") for name in ("one.h", "two.h", "three.h")] == ["kept", "own", "kept"]
