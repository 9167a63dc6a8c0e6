from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.minify.venv import VersionError, install_commands

WHERE = Path("venv")


def test_what_is_not_named_is_as_in_ours() -> None:
    venv, torch = install_commands(WHERE, python="3.12", torch=None, own_python="ours", own_torch="2.13.0")
    assert venv[-3:] == ["--python", "3.12", "venv"]
    assert "torch==2.13.0" in torch
    venv, torch = install_commands(WHERE, python=None, torch="2.12.1", own_python="ours", own_torch="2.13.0")
    assert venv[-2] == "ours"
    assert "torch==2.12.1" in torch


@pytest.mark.parametrize("python", ["", "2.7", "3", "3.12; rm", "--help", "3.12\n", "../python"])
def test_what_is_no_python(python: str) -> None:
    with pytest.raises(VersionError):
        install_commands(WHERE, python=python, torch=None, own_python="ours", own_torch=None)


@given(st.text())
def test_no_text_becomes_an_option_or_an_address(text: str) -> None:
    try:
        commands = install_commands(WHERE, python=None, torch=text, own_python="ours", own_torch=None)
    except VersionError:
        return
    assert f"torch=={text}" in commands[1]
    assert not set(text) - set("0123456789.abrcdevpost+fghijklmnqsuwxyz")
