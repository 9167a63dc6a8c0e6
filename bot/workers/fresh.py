"""Questions answered as the proof asks them: each script alone in a new process, which has imported nothing.

A warm process has imported the compiler before the program begins. What a program changes before that import (a function that the compiler
looks up by name, something that is read at import) has no effect there, and its failure does not show. So it is asked here, which costs the
seconds that a warm process saves.

Torch's caches of compiled graphs are off here, as in warm processes, so that no hit hides a failure. Some failures are hits, or come from
what is cached. For these the caches are on, and each process begins with empty ones: its compile directory is its own, without kernels.
"""

from __future__ import annotations

import itertools
import os
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import cast

from bot.failure.outcome import Outcome
from bot.inside.protocol import SCRIPT, ControlOption, Facts, Question, Task, command, read_reached
from bot.inside.variables import without_settings
from bot.workers import environment, toolchain
from bot.workers.pool import Asked, Pool, PoolError
from bot.workers.process import START, Interrupted, Patience, run_process

_CONTROLS: dict[Task, ControlOption | None] = {
    "control": None,
    "control_fp64": "--fp64",
    "control_spread": "--spread",
    "control_moved": "--moved",
}


class FreshProcesses:
    """Runs scripts and their controls; any other question goes to the warm `pool`, which the caller closes. With `graph_caches`, torch's
    own are on, and empty at first."""

    def __init__(self, pool: Pool, *, graph_caches: bool = False) -> None:
        self.pool, self.graph_caches = pool, graph_caches
        self._numbers = itertools.count(-1, -1)  # the pool's own are positive
        self._cancelled: set[int] = set()

    def submit(self, question: Question) -> Asked:
        """Send a `question`, as `Pool.submit` does."""
        if question.task != "run" and question.task not in _CONTROLS:
            return self.pool.submit(question)
        asked = Asked(Future(), next(self._numbers), self.pool.directory())
        threading.Thread(target=self._work, args=(asked, question), daemon=True).start()
        return asked

    def cancel(self, asked: Asked) -> None:
        """Stop a question that was `asked` and whose answer is no longer needed."""
        self._cancelled.add(asked.number)
        self.pool.cancel(asked)

    def _work(self, asked: Asked, question: Question) -> None:
        found: tuple[Outcome, Facts] | Exception
        try:
            outcome = self._outcome(asked, question)
            found = outcome, cast("Facts", outcome.model_dump())
        except Interrupted:
            found = PoolError("cancelled")
        except Exception as error:  # noqa: BLE001 - whoever waits for the answer gets it
            found = error
        asked.directory.cleanup()
        if isinstance(found, Exception):
            asked.future.set_exception(found)
        else:
            asked.future.set_result(found)

    def _outcome(self, asked: Asked, question: Question) -> Outcome:
        place, pool = Path(asked.directory.name), self.pool
        script = place / SCRIPT
        script.write_text(question.text, encoding="utf-8")
        words = [pool.python, str(script)]
        if question.task != "run":
            option = "--repeats" if question.repeats else _CONTROLS[question.task]
            words = command(pool.python, "control", *([option] if option else []), str(script))
        cache = pool.cache
        if self.graph_caches:
            cache = place / "cache"
            cache.mkdir()
            toolchain.seed(cache)
        env = environment.of_proof(without_settings(os.environ), cache, graph_caches=self.graph_caches)
        if question.as_eager:
            env = {**env, "TORCHINDUCTOR_FALLBACK_RANDOM": "1"}
        outcome = run_process(
            words,
            Patience(question.limit + START),
            cwd=place,
            env=env,
            wanted=lambda: asked.number not in self._cancelled,
            box=pool.box,
            write=(place, cache if self.graph_caches else pool.box.share(cache)) if pool.box else (),
        )
        reached, text = read_reached(outcome.text)
        return outcome.model_copy(update={**reached._asdict(), "text": text})
