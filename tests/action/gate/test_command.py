"""The grammar of `/minify`."""

from __future__ import annotations

import contextlib
import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.gate.command import Command, CommandSyntaxError, RunUrl, commands, help_text, parse
from bot.models.failure import Stage
from bot.models.request import RequestOptions


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("", Command()),
        ("help", Command("help")),
        ("stop", Command("stop")),
        ("again --budget 1h", Command("again", options=RequestOptions(budget=3600.0))),
        ("--stage aot --accuracy strict --device cuda", Command(options=RequestOptions(stage=Stage.AOT, accuracy="strict", device="cuda"))),
        ("--stage=auto", Command()),
        ("--test 'tests/test_x.py::test_y[a b]'", Command(test="tests/test_x.py::test_y[a b]")),
        ("--python-version 3.12 --torch-version 2.13.0", Command(options=RequestOptions(python_version="3.12", torch_version="2.13.0"))),
        ("--torch-version 2.14.0.dev20261101+cu130", Command(options=RequestOptions(torch_version="2.14.0.dev20261101+cu130"))),
        ("—stage aot", Command(options=RequestOptions(stage=Stage.AOT))),
        ("--test “a.py::b c”", Command(test="a.py::b c")),
        # as Option and the space bar write it on a Mac, and a Japanese keyboard
        (
            "--stage\u00a0aot\u3000--test\u00a0'a.py::b[c\u00a0d]'",
            Command(test="a.py::b[c d]", options=RequestOptions(stage=Stage.AOT)),
        ),
        ("https://github.com/o/r/actions/runs/12", Command(url=RunUrl("https://github.com", "o/r", 12))),
        ("https://github.com/o/r/actions/runs/12/attempts/2", Command(url=RunUrl("https://github.com", "o/r", 12, attempt=2))),
        (
            "https://ghe.example:8443/o/r/actions/runs/12/job/34?pr=5#step:3:1",
            Command(url=RunUrl("https://ghe.example:8443", "o/r", 12, 34)),
        ),
        ("again https://github.com/o/r/actions/runs/12", Command("again", RunUrl("https://github.com", "o/r", 12))),
    ],
)
def test_understood(line: str, command: Command) -> None:
    assert parse(line) == command


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--stge aot", "Did you mean `--stage`?"),
        ("--stage aott", "Did you mean `aot`?"),
        ("--device gpu", "Did you mean `cuda`?"),
        ("--stage", "--stage: expected one argument"),
        ("--stage --device cpu", "--stage: expected one argument"),
        *(
            (f"--{option}=--", f"--{option}: ")
            for option in ("stage", "accuracy", "device", "test", "budget", "python-version", "torch-version")
        ),
        ("--stage aot --stage dynamo", "--stage is given twice"),
        ("halp", "Did you mean `help`?"),
        ("please do", "'please' is not understood"),
        ("help stop", "`help` and `stop` do not go together"),
        ("stop --budget 5m", "`stop` takes nothing else"),
        ("--budget 1s", "'1s' is not between 1m and 6h"),
        ("--budget 100h", "'100h' is not between 1m and 6h"),
        ("--budget soon", "'soon' is not a duration"),
        ("--test=-pno:x", "'-pno:x' is not a test's id"),
        ("--test @options.py::x", "'@options.py::x' is not a test's id"),  # from 8.2 on pytest reads options from it
        ("--test ''", "'' is not a test's id"),
        ("--test 'a", "not closed"),
        ("--torch-version 'latest; rm -rf'", "is not a version"),
        ("--python-version 4", "'4' is not a version"),
        ("--sta aot", "There is no option '--sta'"),
        ("https://evil.example/x", "is not the address of a run"),
        ("https://github.com/o/r/actions/runs/1 https://github.com/o/r/actions/runs/2", "two addresses"),
        ("--test a.py::b https://github.com/o/r/actions/runs/1", "Either a test or an address"),
        ("x" * 3000, "longer than"),
    ],
)
def test_not_understood(line: str, words: str) -> None:
    with pytest.raises(CommandSyntaxError, match=re.escape(words)):
        parse(line)


@pytest.mark.parametrize(
    ("line", "meant"), [("--help", "help"), ("HELP", "help"), ("--stage AOT", "aot"), ("--Device cpu", "--device"), ("--stop", "stop")]
)
def test_what_was_meant(line: str, meant: str) -> None:
    with pytest.raises(CommandSyntaxError, match=f"Did you mean `{meant}`"):
        parse(line)


def test_several_commands() -> None:
    assert [command.verb for command in commands("/minify\n\n/minify --stage aot")] == ["minify", "minify"]
    # each takes a machine
    assert [command.verb for command in commands("/minify\n/minify\n/minify --stage auto")] == ["minify", "minify"]
    assert [command.verb for command in commands("/minify help\n/minify help")] == ["help"]
    with pytest.raises(CommandSyntaxError, match="at most 3"):
        commands("/minify\n" * 4)
    for verb in ("stop", "again", "help", "doctor"):
        with pytest.raises(CommandSyntaxError, match="stands alone"):
            commands(f"/minify\n/minify {verb}")
    assert commands("nothing") == ()


def test_the_help_names_every_option_and_every_option_in_it_is_understood() -> None:
    named = [line.split()[0] for line in help_text().splitlines() if line.startswith("--")]
    assert named == ["--stage", "--accuracy", "--device", "--test", "--budget", "--python-version", "--torch-version"]
    values = {"--test": "a.py::b", "--budget": "5m", "--python-version": "3.12", "--torch-version": "2.13.0", "--stage": "aot"}
    parse(" ".join(f"{name} {values.get(name, 'off' if name == '--accuracy' else 'cpu')}" for name in named))


WORDS = st.sampled_from(
    (
        "stop",
        "again",
        "help",
        "doctor",
        "--test",
        "--test=a.py",
        "--budget",
        "5m",
        "--stage=aot",
        "\u2014device",
        "cpu",
        "'",
        "\\",
        "@x",
        "-h",
    )
)


@given(st.text(max_size=200) | st.lists(WORDS | st.text(max_size=3), max_size=6).map(" ".join))
def test_any_line_is_a_command_or_an_error(line: str) -> None:
    with contextlib.suppress(CommandSyntaxError):
        assert isinstance(parse(line), Command)


ids = st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="“”‘’"), min_size=1, max_size=60).filter(
    lambda text: text.isprintable() and not text.startswith(("-", "@")) and "://" not in text
)


@given(ids)
def test_a_quoted_test_id_comes_through(test: str) -> None:
    quoted = shlex.quote(test)
    if not any(word[:1] in "–—" for word in quoted.split()):
        assert parse(f"--test={quoted}").test == test
