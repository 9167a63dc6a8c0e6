"""Bad input and bad machines get a clear error, and lose nothing."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

from tests.e2e.e2e_harness import CASES, ROOT, Answer, code_lines, command, environment, minify, minify_script, run, run_alone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
FAILING = CASES / "real_aot_cpp.py"


def script(tmp: Path, text: str, name: str = "fail.py") -> Path:
    path = tmp / name
    path.write_text(text, encoding="utf-8")
    return path


def quiet(answer_text: str) -> None:
    """No traceback of ours is shown to the user."""
    assert 'bot/engine/job.py"' not in answer_text
    assert 'bot/cli.py"' not in answer_text


def test_fails_in_eager_too(tmp_path: Path) -> None:
    """Such a program did not reproduce: the failure is not the compiler's; the eager error is shown."""
    text = "import torch\n\ndef f(x):\n    return x.reshape(7)\n\ntorch.compile(f)(torch.ones(6))\n"
    answer = minify_script(script(tmp_path, text), tmp_path)
    assert answer.process.status == 4, answer.described()
    assert answer.result["status"] == "not_reproduced"
    assert "eager" in answer.process.text
    assert "shape '[7]' is invalid for input of size 6" in answer.process.text, answer.described()
    assert not (answer.directory / "repro.py").exists()


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    answer = minify_script(script(tmp_path, "import torch\n"), tmp_path, "--python", str(tmp_path / "none"))
    assert answer.process.status == 1, answer.described()
    assert f"there is no interpreter {tmp_path / 'none'}" in answer.process.text
    assert (answer.result["reason_code"], answer.result["machine_fault"]) == ("machine_fault", "no usable torch in this interpreter")


WRONG_BACKWARD = """import torch


@torch.library.custom_op("mine::scale", mutates_args=())
def scale(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


scale.register_fake(torch.empty_like)
scale.register_autograd(lambda ctx, grad: grad.sum(0).item())
x = torch.randn(4, 3, requires_grad=True)
y = torch.compile(lambda x: torch.ops.mine.scale(x.sin()))(x)
y.sum().backward()
"""


def test_a_backward_that_eager_comes_to_later(tmp_path: Path) -> None:
    """The compiler traces it at the call, and so fails at an earlier statement than eager."""
    answer = minify_script(script(tmp_path, WRONG_BACKWARD), tmp_path)
    assert answer.process.status == 4, answer.described()
    assert answer.result["reason_code"] == "fails_in_eager", answer.described()
    assert "cannot be converted to Scalar" in answer.process.text, answer.described()


def test_fails_before_any_compile(tmp_path: Path) -> None:
    answer = minify_script(script(tmp_path, "import torch\nraise KeyError('no weights here')\n"), tmp_path)
    assert answer.process.status == 4, answer.described()
    assert "no weights here" in answer.process.text


def test_syntax_error(tmp_path: Path) -> None:
    answer = minify_script(script(tmp_path, "import torch\ndef f(:\n"), tmp_path)
    assert answer.process.status in (2, 4), answer.described()
    assert "SyntaxError" in answer.process.text or "syntax" in answer.process.text
    assert "fail.py" in answer.process.text
    quiet(answer.process.text)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.py"], "missing.py"),
        (["."], "."),
        ([], "either X or --command"),
        (["a.py", "--no-such-option"], "--no-such-option"),
        (["a.py", "--stage", "deepest"], "deepest"),
        (["a.py", "--accuracy", "maybe"], "maybe"),
        (["a.py", "--budget", "soon"], "soon"),
        (["a.py", "--verify-runs", "0"], "0"),
        (["a.py", "--command", "pytest a.py::test"], "command"),
        (["--command", "make test"], "make"),
        (["--command", "pytest a.py::test", "--", "-x"], "--"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_unusable_arguments(arguments: list[str], says: str, tmp_path: Path) -> None:
    script(tmp_path, "import torch\n", "a.py")
    ended = minify(*arguments, cwd=tmp_path, limit=60)
    assert ended.status == 2, ended.text
    assert says in ended.err
    assert "Traceback" not in ended.text
    assert not (tmp_path / "minified").exists()


def test_out_is_not_ours(tmp_path: Path) -> None:
    """A directory that we did not write is left as it is."""
    thesis = tmp_path / "minified" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("years of work", encoding="utf-8")
    ended = minify(FAILING, cwd=tmp_path, limit=60)
    assert ended.status == 2, ended.text
    assert "minified" in ended.err
    assert "--out" in ended.err
    assert thesis.read_text(encoding="utf-8") == "years of work"
    assert sorted(path.name for path in thesis.parent.iterdir()) == ["thesis.txt"]


def test_out_holds_a_strangers_result(tmp_path: Path) -> None:
    """Another tool's result.json does not make a directory ours."""
    other = tmp_path / "minified" / "result.json"
    other.parent.mkdir()
    other.write_text('{"score": 3}', encoding="utf-8")
    assert minify(FAILING, cwd=tmp_path, limit=60).status == 2
    assert other.read_text(encoding="utf-8") == '{"score": 3}'


def test_out_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "minified").write_text("mine", encoding="utf-8")
    assert minify(FAILING, cwd=tmp_path, limit=60).status == 2
    assert (tmp_path / "minified").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("how", ["PATH", pytest.param("CXX", marks=pytest.mark.all)])
def test_no_cpp_compiler(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is the machine's fault, and is never called a bug of the program."""
    if how == "CXX":
        env = {"CXX": "no-such-compiler"}
    else:
        monkeypatch.delenv("CXX", raising=False)
        (tmp_path / "bin").mkdir()
        for tool in ("sh", "bash", "env", "uname", "ldconfig"):
            found = shutil.which(tool)
            if found:
                (tmp_path / "bin" / tool).symlink_to(found)
        env = {"PATH": str(tmp_path / "bin")}
    env["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "cold")
    answer = minify_script(CASES / "healthy_plain.py", tmp_path, env=env)
    assert answer.process.status == 1, answer.described()
    assert answer.result["status"] == "error"
    assert "compiler" in (answer.result["machine_fault"] or ""), answer.described()
    assert "C++ compiler" in answer.process.text
    quiet(answer.process.text)


def test_interpreter_without_torch(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    answer = minify_script(FAILING, tmp_path, "--python", str(tmp_path / "bare" / "bin" / "python"))
    assert answer.process.status == 1, answer.described()
    assert answer.result["status"] == "error"
    assert "torch" in answer.process.text
    assert "--python" in answer.process.text or "interpreter" in answer.process.text
    quiet(answer.process.text)


@pytest.mark.all
def test_interpreter_with_an_old_torch(tmp_path: Path) -> None:
    """One that is too old is refused by its version."""
    venv.create(tmp_path / "old", with_pip=False)
    python = tmp_path / "old" / "bin" / "python"
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    package = Path(subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()) / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '1.13.1'\n", encoding="utf-8")
    (package / "version.py").write_text("__version__ = '1.13.1'\n", encoding="utf-8")
    answer = minify_script(FAILING, tmp_path, "--python", str(python))
    assert answer.process.status == 1, answer.described()
    assert "1.13.1" in answer.process.text
    quiet(answer.process.text)


def test_interpreter_that_is_none(tmp_path: Path) -> None:
    answer = minify(FAILING, "--python", "no-such-python", cwd=tmp_path, limit=60)
    assert answer.status in (1, 2), answer.text
    assert "no-such-python" in answer.text
    quiet(answer.text)


AWKWARD = {
    "stdin": "assert input() == '', 'something was typed'\n",
    "binary": "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 40)\n"
    "sys.stderr.buffer.write(b'\\xff\\xfe\\x00')\nsys.stdout.flush()\n",
    "chdir": "import os\nimport tempfile\nos.chdir(tempfile.mkdtemp())\n",
    "relative": "assert open('data.txt').read() == 'data'\n",
    "processes": "import subprocess, sys\n"
    "assert subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout == b'1\\n'\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(45)'])\n",
    "arguments": "import sys\nassert sys.argv[1:] == ['--width', '3'], sys.argv\n",
    "main": "assert __name__ == '__main__'\nassert __file__.endswith('fail.py')\n",
}
BODY = """
import torch

@torch.compile
def f(x):
    y = torch.nn.functional.fractional_max_pool2d(x.exp(), 0, output_size=(2, 3))
    return y.tanh().sum()

f(torch.ones(1, 2, 5, 5))
"""
POOL = "fractional_max_pool2d"
FAILURE = "max not supported for zero-dimension"


@pytest.mark.all
@pytest.mark.parametrize("how", AWKWARD)
def test_awkward_script(how: str, tmp_path: Path) -> None:
    """What a script does beside failing does not keep it from being minimized."""
    (tmp_path / "data.txt").write_text("data", encoding="utf-8")
    beginning = "try:\n    input()\nexcept EOFError:\n    pass\n" if how == "stdin" else AWKWARD[how]
    path = script(tmp_path, beginning + BODY)
    rest = ["--", "--width", "3"] if how == "arguments" else []
    answer = minify_script(path, tmp_path, "--verify-runs", "1", *rest)
    assert answer.process.status == 0, answer.described()
    assert answer.result["signature"]["phase"] == "inductor_lowering"
    assert POOL in answer.repro
    assert "tanh" not in answer.repro
    assert code_lines(answer.repro) <= 12
    assert FAILURE in run_alone(answer.directory / "repro.py").err


BRANCH = """
import torch

def f(x):
    y = x.exp()
    if y.sum() > 0:
        return y.cos()
    return y.sin()

torch.compile(f, fullgraph=True)(torch.ones(3))
"""
ASKS_FOR_WIDTH = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, required=True)
width = parser.parse_args().width
"""
AS_SOURCE = {
    "arguments": (ASKS_FOR_WIDTH + BRANCH.replace("ones(3)", "ones(width)")).encode(),
    "latin-1": "# coding: latin-1\nname = 'Größe'\nassert len(name) == 5\n".encode("latin-1") + BRANCH.encode(),
    "byte-order-mark": b"\xef\xbb\xbf" + BRANCH.encode(),
    "tabs": BRANCH.replace("    ", "\t").encode(),
    "annotations": (
        "import dataclasses\n\n@dataclasses.dataclass\nclass Config:\n    width: int = 3\n\n"
        "assert dataclasses.fields(Config)[0].type('4') == 4\n" + BRANCH
    ).encode(),
    "path": (
        BRANCH.split("def f")[0]
        + "for step in range(3):\n    print(step)\n    print('begins')\nfrom library.branch import f\n"
        + BRANCH[BRANCH.index("torch.compile") :]
    ).encode(),
}


@pytest.mark.all
@pytest.mark.parametrize("how", AS_SOURCE)
def test_awkward_script_as_source(how: str, tmp_path: Path) -> None:
    """Where there is no graph, the script itself is reduced, whatever it is written in and whatever it was given."""
    path = tmp_path / "fail.py"
    path.write_bytes(AS_SOURCE[how])
    if how == "path":
        package = tmp_path / "src" / "library"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "branch.py").write_text(BRANCH.split("torch.compile")[0], encoding="utf-8")
    rest = ["--", "--width", "3"] if how == "arguments" else []
    own = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path / "src")])}
    answer = minify_script(path, tmp_path, "--verify-runs", "1", *rest, env=own)
    assert answer.process.status == 0, answer.described()
    assert (answer.result["stage"], answer.result["status"]) == ("source", "minimized"), answer.described()
    assert code_lines(answer.repro) <= 8, answer.described()
    assert "Data-dependent branching" in run_alone(answer.directory / "repro.py").err


def test_a_small_file_of_the_program_is_written_into_its_repro(tmp_path: Path) -> None:
    (tmp_path / "width.json").write_text('{"width": 3}\n', encoding="utf-8")
    read = "json.loads((Path(__file__).parent / 'width.json').read_text())['width']"
    text = "import json\nfrom pathlib import Path\n" + BRANCH.replace("ones(3)", f"ones({read})")
    answer = minify_script(script(tmp_path, text), tmp_path, "--verify-runs", "1")
    assert answer.process.status == 0, answer.described()
    assert "width.json" not in answer.repro


@pytest.mark.all
def test_a_file_that_only_the_user_has(tmp_path: Path) -> None:
    """The script itself has to be reduced, and it reads a large file: said by name, and nothing is posted that does not stand alone."""
    (tmp_path / "width.txt").write_text(" " * 5000 + "3", encoding="utf-8")
    text = BRANCH.replace("ones(3)", "ones(int(open('width.txt').read()))")
    answer = minify_script(script(tmp_path, text), tmp_path, "--verify-runs", "1")
    assert answer.process.status == 1, answer.described()
    assert "width.txt" in answer.result["reason"], answer.described()


@pytest.mark.all
def test_leaves_by_os_exit(tmp_path: Path) -> None:
    """A script that leaves without a word is said to have done that; no verdict is made up."""
    text = "import os, torch\ntorch.compile(lambda x: x.sin())(torch.ones(3))\nos._exit(3)\n"
    answer = minify_script(script(tmp_path, text), tmp_path)
    assert answer.process.status == 4, answer.described()
    assert "3" in (answer.result["reason"] or ""), answer.described()


@pytest.mark.all
def test_leaves_by_os_exit_after_the_failure(tmp_path: Path) -> None:
    """The failure is in the traceback that the script printed before it left, or in what the capture saw."""
    call = BODY.splitlines()[-1]
    caught = f"try:\n    {call}\nexcept Exception:\n    import os, traceback\n    traceback.print_exc()\n    os._exit(1)\n"
    text = BODY.replace(call, caught)
    answer = minify_script(script(tmp_path, text), tmp_path, "--verify-runs", "1")
    assert answer.process.status == 0, answer.described()
    assert FAILURE in run_alone(answer.directory / "repro.py").err


@pytest.mark.all
def test_full_disk(tmp_path: Path) -> None:
    """A file-size limit stands in for a disk without room: said as the machine's fault, not as a bug of the program."""

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    out = tmp_path / "minified"
    child = subprocess.run(
        command("run", FAILING, "--out", out),
        cwd=tmp_path, env=environment(ours=True), stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=small, timeout=400, check=False,
    )  # fmt: skip
    assert child.returncode == 1, child.stdout + child.stderr
    said = (child.stdout + child.stderr).decode(errors="replace")
    assert "Traceback" not in said, said


@pytest.mark.all
def test_pytest_command(tmp_path: Path) -> None:
    """--command runs one test of the user's own suite, with the variables that stand before it."""
    (tmp_path / "tests").mkdir()
    test = """
import os
import torch

def shrink(x):
    y = torch.nn.functional.fractional_max_pool2d(x.exp(), 0, output_size=(2, 3))
    return y.tanh().sum()

def test_other():
    assert True

def test_shrink():
    x = torch.ones(1, 2, 5, 5)
    compiled = torch.compile(shrink) if os.environ.get("SUITE_COMPILES") == "1" else shrink
    torch.testing.assert_close(compiled(x), shrink(x))
"""
    script(tmp_path / "tests", test, "test_shrink.py")
    out = tmp_path / "minified"
    ended = minify(
        "--command", "SUITE_COMPILES=1 pytest tests/test_shrink.py::test_shrink", "--out", out, "--verify-runs", "1", cwd=tmp_path
    )
    answer = Answer(out, ended)
    assert ended.status == 0, answer.described()
    assert POOL in answer.repro
    assert FAILURE in run_alone(out / "repro.py").err


@pytest.mark.all
def test_pytest_command_of_which_one_case_fails(tmp_path: Path) -> None:
    """The case that failed is the one that becomes a script."""
    test = """
import pytest
import torch

@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("branches", [False, True])
def test_branch(branches, size):
    def f(x):
        return x.cos() if branches and x.sum() > 0 else x.sin()

    torch.compile(f, backend="eager", fullgraph=True)(torch.ones(size))
"""
    script(tmp_path, test, "test_branch.py")
    out = tmp_path / "minified"
    options = ("--stage", "source", "--out", out, "--verify-runs", "1")
    ended = minify("--command", "pytest test_branch.py::test_branch", *options, cwd=tmp_path)
    answer = Answer(out, ended)
    assert ended.status == 0, answer.described()
    assert answer.result["status"] == "minimized", answer.described()
    assert "Data-dependent branching" in run_alone(out / "repro.py").err


@pytest.mark.all
def test_pytest_command_whose_test_passes_alone(tmp_path: Path) -> None:
    """What is said is true: the command fails, and the script that was made of it does not."""
    test = """
import os
import torch

def mine(gm, inputs):
    if "PYTEST_CURRENT_TEST" in os.environ:
        raise KeyError("mine")
    return gm

def test_mine():
    torch.compile(lambda x: x + 1, backend=mine)(torch.ones(3))
"""
    script(tmp_path, test, "test_mine.py")
    out = tmp_path / "minified"
    options = ("--stage", "source", "--out", out, "--verify-runs", "1")
    answer = Answer(out, minify("--command", "pytest test_mine.py::test_mine", *options, cwd=tmp_path))
    assert answer.process.status == 1, answer.described()
    assert answer.result["reason"] == ("the command fails here, but not the script that calls its test alone: run 1: did not fail"), (
        answer.described()
    )
    assert not (out / "repro.py").exists()


@pytest.mark.all
def test_script_that_runs_pytest(tmp_path: Path) -> None:
    """The failure is that of the test, and not the exit status of pytest, which any other failure of it has as well."""
    test = """
import pytest
import torch

def test_fine():
    assert torch.compile(torch.sin, backend="eager")(torch.ones(3)).shape == (3,)

def test_branch():
    f = lambda x: x.cos() if x.sum() > 0 else x.sin()
    assert torch.compile(f, backend="eager", fullgraph=True)(torch.ones(3)).shape == (3,)

if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))
"""
    answer = minify_script(script(tmp_path, test), tmp_path, "--verify-runs", "1")
    assert answer.process.status == 0, answer.described()
    assert answer.result["signature"]["exception"][-1] == "Unsupported", answer.described()
    assert "pytest" not in answer.repro


@pytest.mark.all
def test_script_that_runs_its_own_tests(tmp_path: Path) -> None:
    """The failing test is called in the place of `unittest.main()`, and reduced like any other script."""
    test = """
import unittest
import torch

class TestBranch(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(3)

    def test_fine(self):
        self.assertEqual(torch.compile(torch.sin, backend="eager")(self.x).shape, self.x.shape)

    def test_branch(self):
        for branches in (False, True):
            with self.subTest(branches=branches):
                f = lambda x: x.cos() if branches and x.sum() > 0 else x.sin()
                self.assertEqual(torch.compile(f, backend="eager", fullgraph=True)(self.x).shape, (3,))

if __name__ == "__main__":
    unittest.main()
"""
    answer = minify_script(script(tmp_path, test), tmp_path, "--stage", "source", "--verify-runs", "1")
    assert answer.process.status == 0, answer.described()
    assert answer.result["status"] == "minimized", answer.described()
    assert "unittest.main" not in answer.repro
    assert "test_fine" not in answer.repro
    assert "Data-dependent branching" in run_alone(answer.directory / "repro.py").err


@pytest.mark.parametrize("fixture", ["x", pytest.param("", marks=pytest.mark.all)])
def test_pytest_command_that_fails_in_eager_too(fixture: str, tmp_path: Path) -> None:
    """The control of a test is the test, with the compiler taken out; with a fixture of its file or without."""
    test = f"""
import pytest
import torch

@pytest.fixture
def x():
    return torch.ones(2, 3)

def test_shape({fixture}):
    x = torch.ones(2, 3)
    torch.compile(lambda x: x @ x)(x)
"""
    script(tmp_path, test, "test_shape.py")
    ended = minify("--command", "pytest test_shape.py::test_shape", cwd=tmp_path)
    assert ended.status == 4, ended.text
    assert "in eager as well" in ended.text
    assert "shapes cannot be multiplied" in ended.text


@pytest.mark.all
def test_pytest_command_that_passes(tmp_path: Path) -> None:
    script(tmp_path, "import torch\n\ndef test_fine():\n    assert torch.compile(torch.sin)(torch.ones(2)).shape == (2,)\n", "test_fine.py")
    ended = minify("--command", "pytest test_fine.py::test_fine", cwd=tmp_path)
    assert ended.status == 4, ended.text


@pytest.mark.all
def test_user_packages_beside_the_script(tmp_path: Path) -> None:
    """A custom operator registered by an import stays registered in the repro's own text or by its import."""
    package = tmp_path / "mylib"
    package.mkdir()
    (package / "__init__.py").write_text("from mylib.shade import shade\n", encoding="utf-8")
    shade = "import torch\n\ndef shade(x):\n    return torch.nn.functional.fractional_max_pool2d(x.exp(), 0, output_size=(2, 3))\n"
    (package / "shade.py").write_text(shade, encoding="utf-8")
    text = "import torch\nimport mylib\n\ntorch.compile(lambda x: mylib.shade(x).sum() * 2)(torch.ones(1, 2, 5, 5))\n"
    answer = minify_script(script(tmp_path, text), tmp_path, "--verify-runs", "1")
    assert answer.process.status == 0, answer.described()
    assert "mylib" not in answer.repro, "a repro that needs the user's package cannot be posted"


@pytest.mark.all
def test_repro_is_said_on_standard_output(tmp_path: Path) -> None:
    """The result is on standard output, progress on standard error; the process leaves nothing running."""
    answer = minify_script(FAILING, tmp_path, "--verify-runs", "1")
    assert answer.process.status == 0, answer.described()
    assert "minimized" in answer.process.out
    assert answer.process.err.strip()
    left = run(["ps", "-eo", "args"], cwd=tmp_path, env=dict(os.environ), limit=20).out
    assert str(tmp_path) not in left, "a process of the run is left over"


@pytest.mark.all
def test_verify_and_doctor(tmp_path: Path) -> None:
    """`verify` agrees with a true result and contradicts a false one; `doctor` runs."""
    answer = minify_script(FAILING, tmp_path, "--verify-runs", "1")
    assert answer.process.status == 0, answer.described()
    env = environment(ours=True)
    arguments = ("verify", answer.directory / "repro.py", "--result", answer.directory / "result.json", "--runs", "1")
    assert run(command(*arguments), cwd=tmp_path, env=env, limit=300).status == 0
    (answer.directory / "repro.py").write_text("import torch\nprint(torch.ones(1))\n", encoding="utf-8")
    assert run(command(*arguments), cwd=tmp_path, env=env, limit=300).status not in (0, 2)
    doctor = run(command("doctor"), cwd=tmp_path, env=env, limit=120)
    assert doctor.status == 0, doctor.text
    assert "torch" in doctor.out
