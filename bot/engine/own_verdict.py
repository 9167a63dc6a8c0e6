"""A program that says by itself that results are wrong: what of its script may not change, lest it says the same of something else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from bot.engine.capture.hints import held
from bot.engine.state import Reproduction
from bot.models.failure import Kind, Verdict
from bot.oracle.oracle import ScriptOracle
from bot.oracle.run_plan import RunPlan
from bot.reduce.candidate import Candidate
from bot.reduce.graph.printer.script import lines
from bot.reduce.source.kept import Keeps, keeper
from bot.reduce.source.verdicts import keeps_verdict


def held_against_float64(oracle: ScriptOracle, reproduction: Reproduction, text: str, plan: RunPlan) -> ScriptOracle:
    """The `oracle` for the script `text` of a `reproduction`, asked by this `plan`. Where float64 in place of the compiled results passes
    the program's verdict, it must pass each candidate's: a verdict about numbers stays one about those that the compiler makes wrong."""
    if not reproduction.capture.says_it_failed:
        return oracle
    judged = oracle.narrowed(replace(oracle.criterion, own_verdict=True), plan)
    same = judged.ask(Candidate(text, "start:own verdict", (lines(text), len(text)))) is Verdict.SAME
    return judged if same else oracle


def keeps_of(reproduction: Reproduction, source: str, text: str, failing_lines: Collection[int]) -> Keeps:
    """What candidates made of `text` have to keep, for this `reproduction`: functions of the program `source` that the compiler calls,
    where numbers are wrong, and the condition on which the program fails in `failing_lines`.

    Raises:
        SyntaxError: `text` is not Python.
    """
    numbers = reproduction.failure.kind is Kind.ACCURACY
    functions = keeper(text, held(reproduction.capture, source) if numbers else ())
    if not numbers and not reproduction.capture.says_it_failed:
        return functions
    verdict = keeps_verdict(text, failing_lines)
    return lambda candidate: functions(candidate) and verdict(candidate)
