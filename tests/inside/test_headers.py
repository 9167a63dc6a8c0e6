"""What the preprocessor said is kept: with a compiler that counts how often it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
from torch._inductor import cpp_builder

from bot.inside import headers


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    commands: list[str] = []

    def run(command: str, cwd: str) -> None:
        commands.append(command)
        words = command.split()
        Path(words[words.index("-o") + 1]).write_text(f"answer {len(commands)}", encoding="utf-8")

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cpp_builder, "_run_compile_cmd", run)
    headers.remember()
    return commands


def ask(directory: Path, text: str, flags: str = "-E -P") -> str:
    directory.mkdir()
    (directory / "header.hpp").write_text(text, encoding="utf-8")
    cpp_builder._run_compile_cmd(f"g++ {directory}/header.hpp -O3 {flags} -o {directory}/header.i", str(directory))
    return (directory / "header.i").read_text(encoding="utf-8")


def test_the_same_header_is_preprocessed_once(asked: list[str], tmp_path: Path) -> None:
    assert ask(tmp_path / "a", "#include <one.h>") == ask(tmp_path / "b", "#include <one.h>") == "answer 1"
    assert len(asked) == 1


def test_another_header_or_another_flag_is_asked_for(asked: list[str], tmp_path: Path) -> None:
    assert ask(tmp_path / "a", "#include <one.h>") == "answer 1"
    assert ask(tmp_path / "b", "#include <two.h>") == "answer 2"
    assert ask(tmp_path / "c", "#include <one.h>", "-E -P -DMORE") == "answer 3"


def test_what_is_compiled_is_not_kept(asked: list[str], tmp_path: Path) -> None:
    assert ask(tmp_path / "a", "int x;", "-c") == "answer 1"
    assert ask(tmp_path / "b", "int x;", "-c") == "answer 2"


def test_a_cache_that_cannot_be_written_costs_nothing_else(asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "file"))
    assert ask(tmp_path / "a", "#include <one.h>") == "answer 1"
    assert ask(tmp_path / "b", "#include <one.h>") == "answer 2"
