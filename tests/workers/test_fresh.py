"""Questions that are answered in new processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.inside.protocol import Question
from bot.workers.fresh import FreshProcesses
from bot.workers.pool import Pool, PoolError
from tests.probes import probed

# It fails only where the compiler was not imported before it.
CHANGED = """
import sys
before = "torch._inductor" in sys.modules
import torch
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
if not before: raise KeyError(7)
"""


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[FreshProcesses]:
    with Pool(sys.executable, probed(tmp_path / "cache"), tmp_path / "workers.log") as pool:
        yield FreshProcesses(pool)


def test_a_script_and_its_control(fresh: FreshProcesses) -> None:
    pytest.importorskip("torch")
    outcome, facts = fresh.submit(Question(CHANGED)).future.result()
    assert (outcome.status, facts["status"]) == ("raised", "raised")
    assert outcome.text.endswith("KeyError: 7")
    outcome, _ = fresh.submit(Question(CHANGED.replace("raise KeyError(7)", "pass"), "control")).future.result()
    assert outcome.status == "ok", outcome.text
    assert outcome.calls > 0


def test_a_question_that_is_cancelled(fresh: FreshProcesses) -> None:
    asked = fresh.submit(Question("import time; time.sleep(60)"))
    fresh.cancel(asked)
    with pytest.raises(PoolError):
        asked.future.result()


# What torch keeps of a graph is found again in the same process.
KEPT = """
import torch
for _ in range(2):
    torch._dynamo.reset()
    torch.compile(torch.relu)(torch.ones(1))
hits = torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"] + torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"]
raise KeyError(hits > 0)
"""


@pytest.mark.parametrize("graph_caches", [False, True])
def test_caches_of_graphs_are_on_where_they_are_asked_for(fresh: FreshProcesses, graph_caches: bool) -> None:
    pytest.importorskip("torch")
    asked = FreshProcesses(fresh.pool, graph_caches=graph_caches)
    outcome, _ = asked.submit(Question(KEPT)).future.result()
    assert outcome.text.endswith(f"KeyError: {graph_caches}"), outcome.text
