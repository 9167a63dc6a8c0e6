"""The rerun with the hooks in place: how the program ended, whoever caught its error."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from bot.engine.capture.region import Capture  # noqa: E402
from bot.engine.capture.run import STACKS, Watch, capture  # noqa: E402
from bot.engine.target import Target  # noqa: E402
from bot.inside.protocol import RUN_FILE, RunFacts  # noqa: E402
from bot.models.failure import Kind  # noqa: E402
from bot.workers.process import Patience  # noqa: E402
from tests.inside.wire import misfit  # noqa: E402

BROKEN = """
    import sys
    import torch
    def mine(gm, inputs): raise KeyError("mine")
    def run(): torch.compile(lambda x: x + 1, backend=mine)(torch.ones(3))
"""


@pytest.fixture
def rerun(tmp_path: Path) -> Callable[..., Capture]:
    def run(
        body: str, *argv: str, module: str | None = None, name: str = "fail.py", own: float = 100.0, fall_back: bool = False
    ) -> Capture:
        script = tmp_path / name
        script.write_text(textwrap.dedent(BROKEN) + textwrap.dedent(body))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        target = Target(None, module, argv) if module else Target(script, None, argv)
        watch = Watch(tmp_path / "out", tmp_path / "cache", fall_back=fall_back)
        return capture(target, sys.executable, tmp_path, watch, Patience(own, stacks=STACKS))

    return run


pytestmark = pytest.mark.slow  # an interpreter with torch for each


def test_a_script(rerun: Callable[..., Capture], tmp_path: Path) -> None:
    collects = "import gc\nassert gc.isenabled() and not gc.get_freeze_count() and not gc.get_stats()[2]['collections']\n"
    found = rerun(f"{collects}print('said', sys.argv[1:])\ntry: run()\nfinally: sys.stdout.close()", "-v")
    assert found.outcome.status == "raised"
    assert found.signature is not None
    assert (found.signature.kind, found.signature.exception) == (Kind.EXCEPTION, ("BackendCompilerFailed", "KeyError"))
    assert misfit(json.loads((tmp_path / "out" / RUN_FILE).read_text()), RunFacts) == ""
    assert [region.hook for region in found.regions] == ["dynamo"]
    assert found.versions["torch"] == torch.__version__
    assert found.outcome.calls == 1
    log = found.log.read_text()
    assert "said ['-v']" in log
    assert "KeyError: 'mine'" in log
    assert found.outcome.text.count("Traceback") >= 1


def test_what_the_compiler_refuses_is_run_in_eager_where_that_is_asked(rerun: Callable[..., Capture]) -> None:
    """Functions, methods and modules; a program that handles the exception ends for something else, or it does not."""
    body = """
        class Model(torch.nn.Module):
            def forward(self, x): return x * 2

            @torch.compile(backend=mine)
            def method(self, x): return x * 3

        model, x, failed = Model(), torch.ones(3), 0
        for call, right in ((torch.compile(model, backend=mine), 2), (model.method, 3), (torch.compile(lambda x: x * 4, backend=mine), 4)):
            try:
                assert call(x)[0] == right
            except torch._dynamo.exc.BackendCompilerFailed:
                failed += 1
        print("failed:", failed)
        sys.exit({})
    """
    found = rerun(textwrap.dedent(body).format("1"))
    assert found.ended is not None
    assert "failed: 3" in found.log.read_text()
    found = rerun(textwrap.dedent(body).format("1"), fall_back=True)
    assert (found.ended, found.outcome.status, found.outcome.exit) == (None, "exit", 1), found.outcome.text
    assert "failed: 0" in found.log.read_text()
    assert rerun(textwrap.dedent(body).format("failed"), fall_back=True).outcome.status == "ok"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("torch.testing.assert_close(torch.ones(1), torch.ones(1), rtol=0, atol=0.5)", "ok", 0),
        ("sys.exit(3)", "exit", 3),
        ("import os; os._exit(4)", "exit", 4),
        ("import os; os.abort()", "signal", None),
    ],
)
def test_how_it_ends(rerun: Callable[..., Capture], body: str, status: str, code: int | None) -> None:
    found = rerun(body)
    assert (found.outcome.status, found.outcome.exit) == (status, code)
    assert found.regions == ()
    assert found.tolerance == ((0.0, 0.5) if status == "ok" else None)


def test_a_hang_shows_where(rerun: Callable[..., Capture]) -> None:
    found = rerun("import time\ndef stuck(): time.sleep(600)\nstuck()", own=12.0)
    assert found.outcome.status == "timeout"
    assert found.outcome.text.count("in stuck") == STACKS


TESTS = """
    import unittest, pytest

    class TestIt(unittest.TestCase):
        def test_passes(self): pass
        @unittest.expectedFailure
        def test_expected(self): raise IndexError("expected")
        def test_skipped(self): self.skipTest("no")
        def test_subtests(self):
            for n in range(2):
                with self.subTest(n=n): pass
        def test_raises(self): run()
"""
PYTEST = """
    import pytest

    def test_passes(): pass
    @pytest.mark.xfail
    def test_expected(): raise IndexError("expected")
    def test_skipped(): pytest.skip("no")
    def test_raises(): run()
"""


RUNNERS: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "pytest": (PYTEST, "pytest", ("-q", "test_it.py")),
    "pytest runs unittest": (TESTS, "pytest", ("-q", "test_it.py")),
    "unittest": (TESTS, "unittest", ("test_it",)),
    "unittest.main()": (TESTS + "\n    unittest.main()", None, ()),
}


@pytest.mark.parametrize("runner", [pytest.param(name, marks=[] if name == "pytest" else [pytest.mark.all]) for name in RUNNERS])
def test_the_error_that_a_test_runner_catches(rerun: Callable[..., Capture], runner: str, tmp_path: Path) -> None:
    body, module, argv = RUNNERS[runner]
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = lib\n")
    found = rerun(body, *argv, module=module, name="test_it.py")
    assert found.outcome.status == "raised", found.log.read_text()
    assert found.signature is not None
    assert found.signature.exception[-1] == "KeyError"
    file = tmp_path / "test_it.py"
    assert (
        found.test
        == {
            "pytest": f"{file}::test_raises",
            "pytest runs unittest": f"{file}::TestIt::test_raises",
            "unittest": "test_it.TestIt.test_raises",
            "unittest.main()": "__main__.TestIt.test_raises",
        }[runner]
    )
    assert [region.hook for region in found.regions] == ["dynamo"]
    assert (str(tmp_path / "lib") in found.looked) is (module == "pytest")


@pytest.mark.parametrize("runner", ["pytest", pytest.param("unittest.main()", marks=pytest.mark.all)])
def test_failures_that_are_expected_are_none(rerun: Callable[..., Capture], runner: str) -> None:
    body, module, argv = RUNNERS[runner]
    found = rerun(body.replace("run()", "pass"), *argv, module=module, name="test_it.py")
    assert found.outcome.status == "ok", found.log.read_text()


@pytest.mark.parametrize("runner", ["script", pytest.param("pytest", marks=pytest.mark.all)])
def test_settings_that_the_program_gives_before_it_imports_torch(tmp_path: Path, runner: str) -> None:
    body = """
        import os
        os.environ["TORCHINDUCTOR_FX_WRAPPER"] = "1"
        import torch
        def test_it(): torch.compile(lambda x: x + 1)(torch.ones(3))
    """
    script = tmp_path / "test_it.py"
    script.write_text(textwrap.dedent(body) + ("test_it()\n" if runner == "script" else ""))
    target = Target(script, None, ()) if runner == "script" else Target(None, "pytest", ("-q", "test_it.py::test_it"))
    found = capture(target, sys.executable, tmp_path, Watch(tmp_path / "out", tmp_path / "cache"), Patience(100.0))
    assert found.signature is not None, found.outcome.text
    assert found.signature.exception[-1] == "NotImplementedError"
    assert found.regions[0].recipe.config["torch._inductor.config.fx_wrapper"].text == "True"


SWALLOWS = {
    "leaves with a status": "try:\n    run()\nexcept Exception: sys.exit(1)",
    "leaves later": "code = 0\ntry:\n    run()\nexcept Exception: code = 3\nsys.exit(code)",
    "leaves at once": "import os, traceback\ntry:\n    run()\nexcept Exception:\n    traceback.print_exc()\n    os._exit(5)",
    "raises its own": "try:\n    run()\nexcept Exception: raise RuntimeError('serving failed') from None",
    "raises its own meanwhile": "try:\n    run()\nexcept Exception: raise RuntimeError('serving failed')",
    "says its class later": "bad = []\ntry:\n    run()\nexcept Exception as e: bad.append(repr(e))\nif bad: raise RuntimeError(bad)",
}
FAILS = {
    "a backend": BROKEN,
    "Dynamo": """
        import sys
        import torch
        def f(x): return x + sys._getframe(0).f_lineno
        def run(): torch.compile(f, fullgraph=True)(torch.ones(3))
    """,
    "export": """
        import sys
        import torch
        class M(torch.nn.Module):
            def forward(self, x): return x + 1 if x.sum() > 0 else x
        def run(): torch.export.export(M(), (torch.ones(3),))
    """,
    "a backward": """
        import sys
        import torch
        def broken(graph):
            if any(node.name.startswith("tangents") for node in graph.nodes): raise KeyError("in a pass")
        torch._inductor.config.post_grad_custom_post_pass = broken
        def run(): torch.compile(torch.mm)(torch.ones(3, 3, requires_grad=True), torch.ones(3, 3)).sum().backward()
    """,
}


MORE = ("leaves at once", "says its class later", "raises its own meanwhile")
# one of each sort, and those at the compiler's other entrances
ROWS = [
    *(pytest.param(s, "Dynamo", marks=[pytest.mark.all] if s in MORE else []) for s in SWALLOWS),
    *(pytest.param("leaves later", f, marks=[pytest.mark.all] if f == "a backend" else []) for f in FAILS if f != "Dynamo"),
]


@pytest.mark.parametrize(("swallows", "fails"), ROWS)
def test_the_failure_of_a_program_that_swallows_it(rerun: Callable[..., Capture], swallows: str, fails: str) -> None:
    program = textwrap.dedent(FAILS[fails])
    alone, found = rerun(program + "run()\n"), rerun(program + SWALLOWS[swallows] + "\n")
    assert alone.ended is None
    assert found.ended is not None
    assert found.signature is not None
    assert alone.signature is not None
    assert found.signature.same_across_forms(alone.signature)
    # the lines that lead to the failure are in it, also those that it had not passed
    assert [line for line in found.outcome.text.splitlines() if line.strip().startswith(("run()", "def run()"))]


def test_a_program_that_lives_with_an_error_has_its_own(rerun: Callable[..., Capture]) -> None:
    found = rerun(textwrap.dedent(FAILS["Dynamo"]) + "try:\n    run()\nexcept Exception: pass\nraise KeyError('another matter')\n")
    assert found.ended is None
    assert found.signature is not None
    assert found.signature.exception == ("KeyError",)
