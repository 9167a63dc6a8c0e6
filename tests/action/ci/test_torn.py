"""Lines between the frames of a traceback that are none of it."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.paths import CheckoutPaths
from bot.action.ci.torn import MAX_BEFORE_RAISED, untorn

OUTER = ["Traceback (most recent call last):", '  File "/w/tests/test_a.py", line 7, in test_a', "    f(x)"]
INNER = ['  File "/w/site-packages/torch/_inductor/lowering.py", line 8, in made_up', "    return g(x)", "           ^^^^"]
RAISED = "torch._inductor.exc.InductorError: LoweringException: AssertionError: made up"
OTHERS = (
    "INFO 11-27 09:30:01 [loader.py:447] Loading took 1.23 seconds",
    "node017:42:42 [0] NCCL INFO Bootstrap : Using eth0",
    "W1127 09:30:01.123000 42 torch/distributed/run.py:766] Setting OMP_NUM_THREADS",
    "Loading shards:  50%|#####     | 1/2 [00:01<00:01,  1.23s/it]",
    "  0%|          | 0/10 [00:00<?, ?it/s]",
    "wandb: Syncing run made-up",
    "/w/lib/bar.py:12: UserWarning: something is deprecated",
    "  warnings.warn(",
    "torch.ops.made._up_version() = 62",
    "",
)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("at", [2, 3, 4, 5, 6])
def test_a_line_of_another_process(other: str, at: int) -> None:
    whole = [*OUTER, *INNER, RAISED, "more of it"]
    kept = untorn([*whole[:at], other, *whole[at:]])
    frames = [line for line in kept if line.startswith(("  File ", "T"))]
    assert (frames, kept[-2:]) == ([OUTER[0], OUTER[1], INNER[0]], whole[-2:])
    assert other not in kept


@pytest.mark.parametrize(
    "text",
    [
        # what is raised may be called otherwise, and end the log
        [*OUTER, "socket.timeout: timed out", "more of it"],
        [*OUTER, "queue.Empty"],
        [*OUTER, *["a line"] * (MAX_BEFORE_RAISED + 1), RAISED],
        # a message may quote a stack
        [*OUTER, "RayTaskError(ValueError): made up", *INNER, "ValueError: made up"],
        [*OUTER, "KeyError: 1", "", "During handling of the above exception, another exception occurred:", "", *OUTER, RAISED],
        ["a line", '  File "/w/a.py", line 7, in f', "another"],
    ],
)
def test_what_stays(text: list[str]) -> None:
    assert untorn(text) == text


@pytest.mark.parametrize("other", OTHERS)
def test_a_test_of_unittest(other: str) -> None:
    head = f"{'=' * 70}\nERROR: test_a (tests.test_a.TestA.test_a)\n{'-' * 70}"
    end = f"\n\n{'-' * 70}\nRan 1 test in 1.234s\n\nFAILED (errors=1)"
    plain = "\n".join([head, *OUTER, *INNER, RAISED]) + end
    torn = "\n".join([head, *OUTER, other, *INNER, other, RAISED]) + end
    rows = candidates.rows(plain, CheckoutPaths([]))
    assert rows[0]["verdict"] == "suggested"
    assert candidates.rows(torn, CheckoutPaths([])) == rows
