"""A test becomes a script that calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.engine.capture.region import Capture, ChildMain
from bot.engine.capture.source import Source, of_child, source_of
from bot.engine.target import Target
from bot.failure.outcome import Outcome

TESTS = """import unittest

import pytest


def test_plain():
    raise KeyError("plain")


def test_fixture(tmp_path):
    pass


@pytest.mark.parametrize("mode", ["fast", "slow"])
@pytest.mark.parametrize(("n", "t"), [(1, -2.5), (3, int)])
def test_cases(mode, n, t):
    raise KeyError(mode, n, t)


SIZES = [2, pytest.param(5, id="five"), pytest.param(6)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("turn", range(1, 3))
def test_named(size, turn):
    raise KeyError(size, turn)


@pytest.mark.parametrize("n", [0, 7], ids=["none", None])
@pytest.mark.parametrize("on", [False, True], ids=("eager", "compiled"))
def test_titled(n, on):
    raise KeyError(n, on)


@pytest.mark.parametrize("n", [0, 7], ids=lambda n: f"n={n}")
def test_by_function(n):
    raise KeyError(n)


class TestMany:
    @pytest.mark.parametrize("n", [0, 7])
    def test_inside(self, n):
        raise KeyError(n)


class Old(unittest.TestCase):
    def setUp(self):
        self.n = 4

    def test_old(self):
        raise KeyError(self.n)
"""


def called(tmp_path: Path, *argv: str, failed: str = "") -> tuple[object, ...] | None:
    """What the test raises when the script is run."""
    (tmp_path / "test_them.py").write_text(TESTS, encoding="utf-8")
    source = source_of(Target(None, "pytest", argv), tmp_path, failed)
    if source is None:
        return None
    assert source.text.startswith(TESTS.rstrip())
    try:
        exec(compile(source.text, source.name, "exec"), {"__name__": "__main__"})
    except KeyError as error:
        return error.args
    raise AssertionError("nothing was called")


@pytest.mark.parametrize(
    ("node", "raised"),
    [
        ("test_plain", ("plain",)),
        ("test_cases[3-int-slow]", ("slow", 3, int)),
        ("test_cases[1--2.5-fast]", ("fast", 1, -2.5)),
        ("test_named[2-6]", (6, 2)),
        ("test_named[1-five]", (5, 1)),
        ("test_named", (2, 1)),
        ("test_titled[compiled-none]", (0, True)),
        ("test_titled[compiled-7]", (7, True)),
        ("test_by_function[n=7]", (0,)),
        ("TestMany::test_inside[7]", (7,)),
        ("Old::test_old", (4,)),
    ],
)
def test_the_test_is_called(tmp_path: Path, node: str, raised: tuple[object, ...]) -> None:
    assert called(tmp_path, "-x", f"test_them.py::{node}") == raised


@pytest.mark.parametrize("node", ["test_fixture", "test_missing", "test_cases[4-int-slow]", "TestNone::test_inside[7]"])
def test_what_cannot_be_called_is_no_source(tmp_path: Path, node: str) -> None:
    assert called(tmp_path, f"test_them.py::{node}") is None


@pytest.mark.parametrize(
    ("node", "failed", "raised"),
    [
        ("test_them.py::test_named", "/root/test_them.py::test_named[2-6]", (6, 2)),
        ("test_them.py::test_cases", "test_them.py::test_cases[3-int-slow]", ("slow", 3, int)),
        ("test_them.py", "test_them.py::Old::test_old", (4,)),
        ("test_them.py::test_named", "test_them.py::test_named[2-five]", (5, 2)),
        ("test_them.py::test_named", "test_them.py::test_named[2-seven]", (2, 1)),
        ("test_them.py::test_named", "test_other.py::test_named[2-6]", (2, 1)),
        ("test_them.py::test_named", "unknown", (2, 1)),
    ],
)
def test_the_case_that_failed_is_called(tmp_path: Path, node: str, failed: str, raised: tuple[object, ...]) -> None:
    """Where its values cannot be told, the first case is."""
    assert called(tmp_path, node, failed=failed) == raised


@pytest.mark.parametrize(
    ("name", "failed"),
    [
        ("test_them.Old.test_old", ""),
        ("test_them", "test_them.Old.test_old"),
        ("test_them.Old", "a.test_them.Old.test_old (n=4)"),
        ("test_them.Old.test_old", "setUpClass (test_them.Old)"),
    ],
)
def test_a_test_that_unittest_runs_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, failed: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_them.py").write_text(TESTS, encoding="utf-8")
    source = source_of(Target(None, "unittest", ("-v", name)), tmp_path, failed)
    assert source is not None
    assert source.file == tmp_path / "test_them.py"
    assert source.text == f"{TESTS}\n\nOld('test_old').debug()\n"


@pytest.mark.parametrize(("files", "package"), [((), ""), (("a/__init__.py",), ""), (("a/__init__.py", "a/tests/__init__.py"), "a.tests")])
@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_a_test_is_imported_as_a_module_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: str, files: tuple[str, ...], package: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a/tests/test_them.py", *files):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"from ..lib import norm\n{TESTS}", encoding="utf-8")
    named = {"pytest": "a/tests/test_them.py::Old::test_old", "unittest": "a.tests.test_them.Old.test_old"}[runner]
    source = source_of(Target(None, runner, (named,)), tmp_path)
    assert source is not None
    assert source.package == package
    (tmp_path / "a/tests/test_them.py").write_text(f"from a.lib import norm\n{TESTS}", encoding="utf-8")
    other = source_of(Target(None, runner, (named,)), tmp_path)
    assert other is not None
    assert other.package == ""


def test_what_sets_up_a_class_is_called_before_its_test(tmp_path: Path) -> None:
    text = TESTS.replace("    def setUp(self):\n", "    @classmethod\n    def setUpClass(cls):\n        pass\n\n    def setUp(self):\n")
    (tmp_path / "test_them.py").write_text(text, encoding="utf-8")
    source = source_of(Target(None, "pytest", ("test_them.py::Old::test_old",)), tmp_path)
    assert source is not None
    assert source.text.endswith("\n\n\nOld.setUpClass()\nOld('test_old').debug()\n")


def test_the_other_cases_come_after_the_first(tmp_path: Path) -> None:
    (tmp_path / "test_them.py").write_text(TESTS, encoding="utf-8")
    source = source_of(Target(None, "pytest", ("test_them.py::test_cases",)), tmp_path)
    assert source is not None
    assert [text.splitlines()[-1] for text in (source.text, *source.others)] == [
        "test_cases(n=1, t=-2.5, mode='fast')",
        "test_cases(n=1, t=-2.5, mode='slow')",
        "test_cases(n=3, t=int, mode='fast')",
        "test_cases(n=3, t=int, mode='slow')",
    ]


MANY = """import unittest


class TestMany(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.numbers = [3, 4]

    def test_all(self):
        for number in self.numbers:
            with self.subTest(number=number):
                self.assertLess(number, 4)


"""


@pytest.mark.parametrize(
    "end",
    [
        'if __name__ == "__main__":\n    print("é")\n    unittest.main(verbosity=2,\n                  exit=True)\n',
        'if __name__ == "__main__": unittest.main()\n',
        "unittest.main()",
        "from unittest import main; main()",
        "import types\n\ncommon_utils = types.SimpleNamespace()\ncommon_utils.run_tests()\n",
    ],
)
def test_a_script_that_runs_its_tests_calls_the_one_that_failed(tmp_path: Path, end: str) -> None:
    script = tmp_path / "many.py"
    script.write_text(MANY + end, encoding="utf-8")
    source = source_of(Target(script, None, ()), tmp_path, "__main__.TestMany.test_all")
    assert source is not None
    assert source.others == (MANY + end,)
    assert not any(line.strip().endswith("main()") for line in source.text.splitlines())
    with pytest.raises(AssertionError, match="4 not less than 4"):
        exec(compile(source.text, source.name, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(
    ("end", "failed"),
    [
        ("unittest.main()", ""),
        ("unittest.main()", "other.TestMany.test_all"),
        ("unittest.main()", "setUpClass (__main__.TestMany)"),
        ("print()", "__main__.TestMany.test_all"),
        ("x = 1", "__main__.TestMany.test_all"),
        ("", "__main__.TestMany.test_all"),
        ("def f(:", "__main__.TestMany.test_all"),
    ],
)
def test_other_scripts_stay_as_they_are(tmp_path: Path, end: str, failed: str) -> None:
    script = tmp_path / "many.py"
    script.write_text(MANY + end, encoding="utf-8")
    source = source_of(Target(script, None, ()), tmp_path, failed)
    assert source is not None
    assert (source.text, source.others) == (MANY + end, ())


FIXTURES = """import pytest
from pytest import fixture

SEEN = []


@fixture
def size():
    return 4


@pytest.fixture(scope="module", name="box")
def make_box(size):
    SEEN.append("up")
    try:
        yield [size]
    finally:
        SEEN.append("down")


@pytest.fixture(
    autouse=True,
)
def lowering():
    SEEN.append("lowering")
    yield
    SEEN.clear()


@pytest.fixture(params=[1, 2])
def several(request):
    return request.param


@pytest.fixture
def placed(tmp_path):
    return tmp_path


def test_box(box, size):
    raise KeyError(SEEN, box, size)


@pytest.mark.parametrize("size", [5, 6])
@pytest.mark.parametrize("n", [1])
def test_both(n, size, box):
    raise KeyError(n, size, box)


class TestIn:
    def test_it(self, box):
        raise KeyError(box)


@pytest.fixture(params=[1, 2])
def asking(request):
    return request.node.name


def test_several(several):
    raise KeyError(several)


def test_asking(asking):
    pass


def test_placed(placed):
    pass


def test_alone():
    raise KeyError(SEEN)
"""


def raised_by(text: str) -> tuple[object, ...]:
    """What a script ends with."""
    try:
        exec(compile(text, "test_them.py", "exec"), {"__name__": "__main__"})
    except KeyError as error:
        return error.args
    raise AssertionError("it should end in an error")


@pytest.mark.parametrize(
    ("node", "first", "last"),
    [
        ("::test_box", (["up"], [4], 4), (["lowering", "up"], [4], 4)),
        ("::test_both[1-5]", (1, 5, [4]), (1, 5, [4])),
        ("::test_both[1-6]", (1, 6, [4]), (1, 6, [4])),
        ("::TestIn::test_it", ([4],), ([4],)),
        ("::test_alone", ([],), (["lowering"],)),
        ("::test_several", (1,), (1,)),
        ("::test_several[2]", (2,), (2,)),
    ],
)
def test_fixtures_of_the_file_are_called(tmp_path: Path, node: str, first: tuple[object, ...], last: tuple[object, ...]) -> None:
    """First those that the test takes, then with what each test is given."""
    file = tmp_path / "test_them.py"
    file.write_text(FIXTURES, encoding="utf-8")
    source = source_of(Target(None, "pytest", ("test_them.py" + node,)), tmp_path)
    assert source is not None
    assert raised_by(source.text) == first
    assert raised_by(source.others[-1]) == last
    before = FIXTURES.split("\n")
    for number, line in enumerate(source.others[-1].split("\n")[: len(before)]):
        assert line in (before[number], "")  # the failure names lines by their numbers


@pytest.mark.parametrize("node", ["::test_asking", "::test_placed"])
def test_what_pytest_alone_can_give_is_no_source(tmp_path: Path, node: str) -> None:
    (tmp_path / "test_them.py").write_text(FIXTURES, encoding="utf-8")
    assert source_of(Target(None, "pytest", ("test_them.py" + node,)), tmp_path) is None


def test_fixtures_that_need_each_other_are_not_called(tmp_path: Path) -> None:
    text = "import pytest\n\n@pytest.fixture\ndef a(b):\n    pass\n\n@pytest.fixture\ndef b(a):\n    pass\n\ndef test_x(a):\n    pass\n"
    (tmp_path / "test_them.py").write_text(text, encoding="utf-8")
    assert source_of(Target(None, "pytest", ("test_them.py::test_x",)), tmp_path) is None


def test_a_whole_file_is_no_source(tmp_path: Path) -> None:
    assert called(tmp_path, "test_them.py") is None


@pytest.mark.parametrize("target", [Target(None, "http.server", ()), Target(None, "pytest", ("nowhere.py::test_a",))])
def test_other_commands_have_none(tmp_path: Path, target: Target) -> None:
    assert source_of(target, tmp_path) is None


def test_what_a_launcher_starts_is_the_program(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x = 1\n")
    found = source_of(Target(None, "torch.distributed.run", ("--nproc-per-node", "2", "train.py", "--x")), tmp_path)
    assert found is not None
    assert (found.text, found.name) == ("x = 1\n", "train.py")
    assert source_of(Target(None, "torch.distributed.run", ("nowhere.py",)), tmp_path) is None
    assert source_of(Target(None, "torch.distributed.run", ("-m", "train")), tmp_path) is None


def test_a_declared_encoding_goes(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_bytes("#!/usr/bin/env python\n# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"))
    source = source_of(Target(script, None, ()), tmp_path)
    assert source is not None
    assert source.text == "#!/usr/bin/env python\n#\nx = 'é'\n"


@pytest.mark.parametrize("raw", ["x = 1\n".encode("utf-16"), b"x = 1\0\n", b"# coding: rot13\nk = 1\n", b"x = " + b"-" * 100_000 + b"1\n"])
def test_text_that_python_cannot_read_stays(tmp_path: Path, raw: bytes) -> None:
    script = tmp_path / "test_a.py"
    script.write_bytes(raw)
    source = source_of(Target(script, None, ()), tmp_path, "__main__.TestMany.test_all")
    assert source is not None
    assert source.others == ()
    assert source_of(Target(None, "pytest", ("test_a.py::test_b",)), tmp_path) is None


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_bytes(b"x = '\xff'\n")
    source = source_of(Target(script, None, ()), tmp_path)
    assert source is not None
    assert source.text == "x = '\ufffd'\n"


@pytest.mark.parametrize(
    ("module", "file", "package", "name"),
    [
        ("shapes.export", "shapes/export.py", "shapes", "shapes/export.py"),
        ("shapes", "shapes/__main__.py", "shapes", "shapes/__main__.py"),
        ("alone", "alone.py", "", "alone.py"),
    ],
)
def test_a_module_is_the_file_that_python_runs(tmp_path: Path, module: str, file: str, package: str, name: str) -> None:
    place = tmp_path / "src"
    for path in ("shapes/__init__.py", "shapes/export.py", "shapes/__main__.py", "alone.py"):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(f"# {path}\n")
    source = source_of(Target(None, module, ("-x",)), tmp_path, places=(tmp_path, place))
    assert source is not None
    assert (source.text, source.file, source.package, source.name) == (f"# {file}\n", place / file, package, name)
    assert source_of(Target(None, "unittest", ("a",)), tmp_path, places=(tmp_path, place)) is None


STARTS_ITSELF = """\
import sys
done = []
if __name__ == "__main__":
    raise SystemExit("the main process")
def step(number, name="", *, scale=1.0):
    done.append((number, name, scale))
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("step(3, 'it', scale=0.5)", [(3, "it", 0.5)]),
        ("step((1, [2]))", [((1, [2]), "", 1.0)]),
        # of no function of the file, or no call by literals: as it is
        *((call, None) for call in ("", "step(", "a.step(1)", "step(open('x'))", "step(1); print(2)", "lambda: 1", "step(*x)")),
    ],
)
def test_the_work_of_another_process_is_called(call: str, expected: list[object] | None) -> None:
    source = Source(STARTS_ITSELF, Path("fail.py"))
    found = of_child(source, child(call=call), ())
    assert found is not None
    if expected is None:
        assert found == source
        return
    assert found.others == (STARTS_ITSELF,)
    assert found.text.split("\n").index('def step(number, name="", *, scale=1.0):') == 4  # as the failure counts its lines
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(found.text, namespace)
    assert namespace["done"] == expected


def test_the_arguments_of_another_process_are_given() -> None:
    source = Source("import sys\nprint(sys.argv[1:])\n", Path("fail.py"))
    found = of_child(source, child(argv=("child",)), ())
    assert found is not None
    assert found.text == 'import sys\nsys.argv[1:] = ["child"]\nimport sys\nprint(sys.argv[1:])\n'
    assert found.others == (source.text,)
    assert of_child(source, child(argv=()), ()) == source


def child(**facts: Any) -> Capture:
    return Capture(
        outcome=Outcome(status="raised"), signature=None, regions=(), versions={}, log=Path("log.txt"), child="process 7", **facts
    )


def test_another_script_that_the_program_starts(tmp_path: Path) -> None:
    launcher = Source("import subprocess\n", tmp_path / "scripts" / "launch.py")
    main = ChildMain(file=tmp_path / "src" / "train.py", text="import model\n", package="src")
    found = of_child(launcher, child(main=main, argv=()), (tmp_path,))
    assert found == Source("import model\n", tmp_path / "src" / "train.py", ("import subprocess\n",), "src")
    # no more than its text is taken of what lies elsewhere
    found = of_child(launcher, child(main=main, argv=("--fast",)), (tmp_path / "lib",))
    assert found == Source('import sys\nsys.argv[1:] = ["--fast"]\nimport model\n', Path.cwd() / "train.py", ("import subprocess\n",))
    # a link in the place leads there as well
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/link").symlink_to(tmp_path / "src")
    found = of_child(None, child(main=main.model_copy(update={"file": tmp_path / "lib/link/train.py"}), argv=()), (tmp_path / "lib",))
    assert found == Source("import model\n", Path.cwd() / "train.py")
    # a command, and a launcher that is no file
    main = ChildMain(file=tmp_path, text="import torch\n")
    assert of_child(None, child(main=main, argv=()), (tmp_path,)) == Source("import torch\n", tmp_path / "<string>")
    # pytest, say
    main = ChildMain(file=tmp_path / "lib" / "python3.11" / "site-packages" / "tool.py", text="main()\n")
    assert of_child(launcher, child(main=main, argv=()), (tmp_path,)) is launcher


OWN = """import sys

import pytest


@pytest.mark.parametrize("n", [1, 2])
def test_one(n):
    raise KeyError(n)


"""


@pytest.mark.parametrize(
    "end",
    [
        'if __name__ == "__main__":\n    raise SystemExit(pytest.main([__file__]))\n',
        'if __name__ == "__main__":\n    import sys\n    sys.exit(pytest.main([__file__, "-x"]))\n',
        "sys.exit(pytest.main([__file__]))\n",
        'def main():\n    sys.exit(pytest.main([__file__]))\n\n\nif __name__ == "__main__":\n    main()\n',
    ],
)
def test_a_script_that_runs_pytest_calls_the_failing_test(tmp_path: Path, end: str) -> None:
    script = tmp_path / "own.py"
    script.write_text(OWN + end)
    found = source_of(Target(script, None, ()), tmp_path, f"{script}::test_one[2]")
    assert found is not None
    assert found.text.endswith("test_one(n=2)\n")
    assert found.text.splitlines()[7] == "    raise KeyError(n)", "lines keep their numbers"
    assert found.others[-1] == OWN + end
    with pytest.raises(KeyError, match="2"):
        exec(compile(found.text, "own.py", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("failed", ["", "other.py::test_one[2]", "own.py", "own.py::test_none"])
def test_a_script_whose_failing_test_is_unknown_stays(tmp_path: Path, failed: str) -> None:
    script = tmp_path / "own.py"
    script.write_text(OWN + "pytest.main([__file__])\n")
    assert source_of(Target(script, None, ()), tmp_path, failed) == Source(script.read_text(), script)


def test_a_file_s_own_run_of_its_tests_is_not_that_of_the_one(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN + 'if __name__ == "__main__":\n    raise SystemExit(pytest.main([__file__]))\n')
    found = source_of(Target(None, "pytest", ("own.py::test_one[1]",)), tmp_path)
    assert found is not None
    assert "pytest.main" not in found.text
    with pytest.raises(KeyError, match="1"):
        exec(compile(found.text, "own.py", "exec"), {"__name__": "__main__"})
