"""Command lines, and the programs that they run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.engine.target import CommandError, Target, only_defines_tests, target_of_command


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("pytest a.py::test_x -k 'a b'", Target(None, "pytest", ("a.py::test_x", "-k", "a b"))),
        ("/venv/bin/pytest a.py", Target(None, "pytest", ("a.py",))),
        ("py.test", Target(None, "pytest", ())),
        ("python fail.py -v --x=1", Target(Path("fail.py"), None, ("-v", "--x=1"))),
        ("/usr/bin/python3.11 -u fail.py", Target(Path("fail.py"), None, ())),
        ("python -m pytest -x", Target(None, "pytest", ("-x",))),
        ("python -mpytest -x", Target(None, "pytest", ("-x",))),
        ("python -um unittest a", Target(None, "unittest", ("a",))),
        ("python -W ignore -Xdev -X faulthandler fail.py -m x", Target(Path("fail.py"), None, ("-m", "x"))),
        ("python -bWignore fail.py", Target(Path("fail.py"), None, ())),
        ("FOO=1 pytest a.py", Target(None, "pytest", ("a.py",), (("FOO", "1"),))),
        ("A= B='x y=z' A=2 python fail.py C=3", Target(Path("fail.py"), None, ("C=3",), (("A", ""), ("B", "x y=z"), ("A", "2")))),
        ("env FOO=1 python -m pytest -x", Target(None, "pytest", ("-x",), (("FOO", "1"),))),
        ("env pytest", Target(None, "pytest", ())),
        ("torchrun --nproc-per-node 2 train.py --x", Target(None, "torch.distributed.run", ("--nproc-per-node", "2", "train.py", "--x"))),
        ("accelerate launch train.py", Target(None, "accelerate.commands.launch", ("train.py",))),
    ],
)
def test_commands(command: str, target: Target) -> None:
    assert target_of_command(command) == target


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("python fail.py x.py", "fail.py"),
        ("pytest -q t/a.py::A::test_x[1.py]", "t/a.py"),
        ("pytest a.py::test_x a.py::test_y", "a.py"),
        ("pytest a.py b.py", None),
        ("pytest", None),
        ("python -m unittest a.py", None),
        ("torchrun --nproc-per-node 2 a/train.py b.py", "a/train.py"),
        ("python -m torch.distributed.run -m package.train", None),
    ],
)
def test_file(command: str, file: str | None) -> None:
    assert target_of_command(command).file == file


@pytest.mark.parametrize(
    ("arguments", "tests"),
    [
        ("tests.test_x.TestY.test_z", ("tests/test_x.py::TestY::test_z",)),
        ("-v tests.test_x -k z", ("tests/test_x.py",)),
        ("tests/test_x.py", ("tests/test_x.py",)),
        ("tests.test_x.TestY alone", ("tests/test_x.py::TestY", "alone.py")),
        ("tests.missing.TestY", ()),
        ("discover -s tests", ()),
    ],
)
def test_what_unittest_runs_is_found_in_its_file(
    arguments: str, tests: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    for name in ("tests/test_x.py", "alone.py"):
        (tmp_path / name).touch()
    target = target_of_command(f"python -m unittest {arguments}")
    assert target.tests == tests
    assert target.name == ("test_x.py" if len(tests) == 1 else "unittest.py")
    assert target.arguments == ()


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("python fail.py x.py", ("x.py",)),
        ("pytest -q a.py", ()),
        ("python -m package.train --x", ("--x",)),
        ("torchrun --nproc-per-node 2 a/train.py --x b.py", ("--x", "b.py")),
        ("accelerate launch train.py", ()),
        ("torchrun -m package.train --x", ()),
    ],
)
def test_arguments(command: str, arguments: tuple[str, ...]) -> None:
    assert target_of_command(command).arguments == arguments


@pytest.mark.parametrize(
    "command",
    [
        *(
            "",
            "  ",
            "make test",
            "bash -c 'pytest'",
            "pytest 'a",
            "pythonic fail.py",
            "FOO=1",
            "env",
            "env -i pytest",
            "1A=2 pytest",
            "accelerate config",
        ),
        *("python", "python -c 'import x' fail.py", "python -", "python -u", "python -m", "python --version", "python -Z fail.py"),
    ],
)
def test_commands_that_run_no_python_program(command: str) -> None:
    with pytest.raises(CommandError):
        target_of_command(command)


@given(st.lists(st.sampled_from(["python", "-m", "-W", "-u", "-c", "-", "--", "x", "-mx", "-X", "'"]), max_size=6))
def test_a_command_gives_a_target_or_says_no(words: list[str]) -> None:
    try:
        target = target_of_command(" ".join(words))
    except CommandError:
        return
    assert (target.script is None) != (target.module is None)


def test_names() -> None:
    assert Target(Path("a/fail.py"), None, ()).name == "fail.py"
    assert Target(None, "pytest", ()).name == "pytest"


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (Target(Path("a/fail.py"), None, ()), "fail.py"),
        (Target(None, "pytest", ("-x", "tests/test_it.py::test_this[1]")), "test_it.py"),
        (Target(None, "pytest", ("-k", "this")), "pytest"),
        (Target(None, "package.train", ()), "train.py"),
        (Target(None, "torch.distributed.run", ("--standalone", "a/train.py")), "train.py"),
    ],
)
def test_what_tracebacks_call_the_program(target: Target, name: str) -> None:
    assert target.name == name


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("def test_x():\n    f()\n", True),
        ("class TestX(TestCase):\n    def test_x(self):\n        f()\n", True),
        ("class TestX(TestCase):\n    def test_x(self):\n        f()\nif __name__ == '__main__':\n    unittest.main()\n", False),
        ("def test_x():\n    f()\npytest.main([__file__])\n", False),
        ("def test_x():\n    f()\nif __name__ == '__main__':\n    run_tests()\n", False),
        ("def test_x():\n    f()\ntest_x()\n", False),
        ("def f():\n    test()\n", False),
        ("def test(:", False),
        ("\0", False),
        ("", False),
    ],
)
def test_whether_a_script_only_defines_tests(text: str, only: bool) -> None:
    assert only_defines_tests(text) is only
