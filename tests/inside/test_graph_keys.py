"""Keys of the caches of compiled graphs: made as a user's process makes them."""

from __future__ import annotations

import textwrap

import pytest

torch = pytest.importorskip("torch")

from bot.failure.outcome import Outcome  # noqa: E402
from bot.inside.protocol import Question  # noqa: E402
from bot.workers.pool import Pool  # noqa: E402

PASS = """
import torch
from torch._inductor.custom_graph_pass import CustomGraphPass
import torch._inductor.config as inductor

class Nothing(CustomGraphPass):
    def __call__(self, graph):
        pass
    def uuid(self):
        {uuid}

inductor.post_grad_custom_post_pass = Nothing()
{setting}
x = torch.ones(3)
print(torch.compile(lambda x: x + 1)(x))
"""


def ask(pool: Pool, uuid: str, setting: str = "") -> Outcome:
    return pool.ask(Question(textwrap.dedent(PASS).format(uuid=uuid, setting=setting), limit=100.0))[0]


def test_a_pass_is_asked_for_its_uuid(pool: Pool) -> None:
    outcome = ask(pool, "return missing")
    assert outcome.status == "raised"
    assert "name 'missing' is not defined" in outcome.text


def test_it_is_not_asked_where_the_program_has_the_cache_off(pool: Pool) -> None:
    assert ask(pool, "return missing", "inductor.fx_graph_cache = False").status == "ok"


def test_nothing_is_kept(pool: Pool) -> None:
    outcome = ask(pool, "return 'same'", "import os; print('kept', os.listdir(os.environ['TORCHINDUCTOR_CACHE_DIR']))")
    again = ask(pool, "return 'same'", "import os; print('kept', os.listdir(os.environ['TORCHINDUCTOR_CACHE_DIR']))")
    assert (outcome.status, again.status) == ("ok", "ok")
    assert "fxgraph" not in again.text


def test_a_pass_without_a_uuid_bypasses_the_cache(pool: Pool) -> None:
    """As in torch: that is no failure."""
    assert ask(pool, "return None").status == "ok"
