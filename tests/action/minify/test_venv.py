from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.gate.command import parse
from bot.action.minify.venv import VersionError, build_of, install_commands

WHERE = Path("venv")


def test_what_is_not_named_is_as_in_ours() -> None:
    venv, torch, _ = install_commands(WHERE, python="3.12", torch=None, own_python="ours", own_torch="2.13.0")
    assert venv[-3:] == ["--python", "3.12", "venv"]
    assert "torch==2.13.0" in torch
    venv, torch, _ = install_commands(WHERE, python=None, torch="2.12.1", own_python="ours", own_torch="2.13.0")
    assert venv[-2] == "ours"
    assert "torch==2.12.1" in torch


@pytest.mark.parametrize("python", ["", "2.7", "3", "3.12; rm", "--help", "3.12\n", "../python"])
def test_what_is_no_python(python: str) -> None:
    with pytest.raises(VersionError):
        install_commands(WHERE, python=python, torch=None, own_python="ours", own_torch=None)


@given(st.text())
def test_no_text_becomes_an_option_or_an_address(text: str) -> None:
    try:
        commands = install_commands(WHERE, python=None, torch=text, own_python="ours", own_torch=None, index="http://i")
    except VersionError:
        return
    assert commands[1][-1] == ("torch" if text.startswith("nightly") else f"torch=={text}")
    assert not set(text) - set("0123456789.abrcdevpost+fghijklmnqsuwxyz")


@pytest.mark.parametrize(
    ("torch", "more"),
    [
        ("2.13.0", ["torch==2.13.0"]),
        ("2.13.0rc1", ["torch==2.13.0rc1"]),
        ("2.13.0+cu126", ["--index", "http://i/cu126", "torch==2.13.0+cu126"]),
        ("2.13.0+cpu", ["--index", "http://i/cpu", "torch==2.13.0+cpu"]),
        ("nightly", ["--index", "http://i/nightly/cu130", "--prerelease", "allow", "torch"]),
        ("nightly+cpu", ["--index", "http://i/nightly/cpu", "--prerelease", "allow", "torch"]),
        ("2.14.0.dev20261101", ["--index", "http://i/nightly/cu130", "--prerelease", "allow", "torch==2.14.0.dev20261101"]),
        ("2.14.0.dev20261101+cu126", ["--index", "http://i/nightly/cu126", "--prerelease", "allow", "torch==2.14.0.dev20261101+cu126"]),
    ],
)
def test_a_version_is_asked_of_the_index_that_has_it(torch: str, more: list[str]) -> None:
    _, first, second = install_commands(
        WHERE, python=None, torch=torch, own_python="p", own_torch="2.13.0", index="http://i", build="cu130"
    )
    assert first[6:] == more
    # only torch comes from there
    assert second[6:] == ["numpy", "pytest"]


@pytest.mark.parametrize(
    ("version", "build"), [("2.13.0+cu126", "cu126"), ("2.13.0", None), (None, None), ("2.13.0a0+git1234.local", None)]
)
def test_the_build_of_a_version(version: str | None, build: str | None) -> None:
    assert build_of(version) == build


@given(st.from_regex(r"(nightly|[0-9]\.[0-9]{1,2}(\.[0-9])?((a|b|rc|\.dev|\.post)[0-9]{1,8})?)(\+[a-z0-9]{1,5})?", fullmatch=True))
def test_what_a_comment_may_say_can_be_installed(text: str) -> None:
    assert parse(f"--torch-version {text}").options.torch_version == text
    assert install_commands(WHERE, python=None, torch=text, own_python="p", own_torch=None, index="http://i")


@pytest.mark.parametrize("torch", ["nightly", "2.13.0+cpu", "2.14.0.dev20261101"])
def test_without_an_index_it_says_what_is_missing(torch: str) -> None:
    with pytest.raises(VersionError, match="`torch-index`"):
        install_commands(WHERE, python=None, torch=torch, own_python="p", own_torch=None)


def test_our_own_torch_comes_from_wherever_it_came() -> None:
    commands = install_commands(WHERE, python="3.12", torch=None, own_python="p", own_torch="2.13.0+cpu")
    assert commands[1][-1] == "torch==2.13.0+cpu"
