"""Settings from environment variables, given by a script whose torch was imported before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bot.inside import environment
from bot.inside.protocol import Question
from bot.workers.pool import Pool
from tests.probes import probed

ROOT = Path(__file__).parents[2]
ONE, TWO = "TORCHINDUCTOR_FREEZING", "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS"


@pytest.fixture(autouse=True)
def _environ(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of these is set, and whatever a test sets is gone afterwards."""
    for name in (ONE, TWO):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


class TestState:
    """What is read from a script's text."""

    @pytest.mark.parametrize(
        "line",
        [
            f'os.environ["{ONE}"] = "1"',
            f'environ["{ONE}"] = "1"',
            f'os.environ.setdefault("{ONE}", "1")',
            f'os.environ.update({{"{ONE}": "1"}})',
            f'os.environ.update({ONE}="1", HOME="/")',
            f'os.environ |= {{"{ONE}": "1"}}',
            f'import torch\nx = torch.ones(2)\nos.environ["{ONE}"] = "1"',
            f'def f(x):\n    return torch.compile(g)(x)\nos.environ["{ONE}"] = "1"',
            f'os.environ["{ONE}"] = "1"\nimport torch._inductor',
        ],
    )
    def test_set(self, line: str) -> None:
        assert environment.state(f"import os\n{line}\n") == [ONE]
        assert os.environ[ONE] == "1"

    @pytest.mark.parametrize(
        "line",
        [
            f'os.environ["{ONE}"] = value',
            f'other["{ONE}"] = "1"',
            'os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "99"',
            'os.environ["HOME_OF_NOBODY"] = "1"',
            f'os.putenv("{ONE}", "1")  # os.environ does not see it, nor does torch',
            f'def f():\n    os.environ["{ONE}"] = "1"',
            f'import torch._inductor.config\nos.environ["{ONE}"] = "1"',
            f'from torch import _dynamo\nos.environ["{ONE}"] = "1"',
            f'@torch.compile\ndef f(x): return x\nos.environ["{ONE}"] = "1"',
            f'os.environ["{ONE}"] = "1',
        ],
    )
    def test_not_set(self, line: str) -> None:
        """What torch would not have seen, or is the machine's, or cannot be known without running the script."""
        before = dict(os.environ)
        assert environment.state(f"import os\n{line}\n") == []
        assert dict(os.environ) == before

    def test_a_default_gives_way(self) -> None:
        os.environ[ONE] = "0"
        assert environment.state(f'import os\nos.environ.setdefault("{ONE}", "1")\n') == []
        assert environment.state(f'import os\nos.environ["{ONE}"] = "1"\n') == [ONE]


class TestBeforeTorch:
    """A worker's child: the config modules are as if they were imported after the script's first lines."""

    def test_all_config_modules_and_nested_entries(self, pool: Pool) -> None:
        script = """
            import os
            os.environ["TORCHINDUCTOR_FREEZING"] = "1"
            os.environ["TORCHINDUCTOR_CUDAGRAPHS"] = "1"
            os.environ["TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE"] = "7"
            os.environ["AOT_INDUCTOR_COMPILE_WRAPPER_OPT_LEVEL"] = "O2"
            os.environ["TORCHINDUCTOR_DELAY_REALIZE_CHEAP_OUTPUTS"] = "1"
            os.environ["TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS"] = "1"
            os.environ["TORCHINDUCTOR_ERROR_ON_CUSTOM_OP_ALIASING"] = "1"
            import torch
            from torch._dynamo import config as dynamo
            from torch._functorch import config as functorch
            from torch._inductor import config as inductor
            assert inductor.freezing
            assert inductor.triton.cudagraphs
            assert inductor.cpp.min_chunk_size == 7
            assert inductor.aot_inductor.compile_wrapper_opt_level == "O2"
            assert dynamo.capture_scalar_outputs
            for module, name in ((inductor, "delay_realize_cheap_outputs"), (functorch, "error_on_custom_op_aliasing")):
                assert getattr(module, name, True) is True  # not in all versions
            assert inductor.get_config_copy()["freezing"]
            with inductor.patch(freezing=False):
                assert not inductor.freezing
            inductor.triton.cudagraphs = False
            assert not inductor.triton.cudagraphs
        """
        for task in ("run", "control"):
            outcome, _ = pool.ask(Question(textwrap.dedent(script), task, limit=60.0))
            assert outcome.status == "ok", outcome.text

    def test_the_next_child_has_none_of_it(self, pool: Pool) -> None:
        script = "import os, torch._inductor.config as c; assert not c.freezing and 'TORCHINDUCTOR_FREEZING' not in os.environ\n"
        assert pool.ask(Question(script, limit=60.0))[0].status == "ok"

    def test_workers_do_not_inherit_settings(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(ONE, "1")
        with Pool(sys.executable, probed(tmp_path), tmp_path / "workers.log") as pool:
            outcome, _ = pool.ask(Question(f"import os; assert {ONE!r} not in os.environ", limit=60.0))
        assert outcome.status == "ok", outcome.text


def test_entries_that_a_variable_gave_are_carried() -> None:
    """They are the default to torch, but whoever runs the repro does not have them."""
    code = """
        import json
        from bot.inside.capture import recipe
        import torch._inductor.config as inductor
        inductor.max_autotune = False  # as it is without the variable
        print(json.dumps({name: entry["text"] for name, entry in recipe.config_entries().items()}))
    """
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TORCHINDUCTOR_FREEZING": "1",
        "TORCHINDUCTOR_MAX_AUTOTUNE": "1",
        "TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE": "7",
        "TORCHINDUCTOR_CUDAGRAPHS": "1",
        "TORCHINDUCTOR_SIZE_ASSERTS": "1",
        "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS": "1",
        # the machine's, or of a run
        "TORCHINDUCTOR_COMPILE_THREADS": "3",
        "TORCHINDUCTOR_PROFILE": "1",
        "TORCHDYNAMO_VERBOSE": "1",
        "TORCH_COMPILE_DEBUG": "1",
    }
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True, check=True, timeout=100)
    assert json.loads(ran.stdout.splitlines()[-1]) == {
        "torch._inductor.config.freezing": "True",
        "torch._inductor.config.cpp.min_chunk_size": "7",
        "torch._inductor.config.triton.cudagraphs": "True",
        "torch._dynamo.config.capture_scalar_outputs": "True",
    }
