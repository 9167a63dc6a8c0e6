"""What counts as the same failure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.failure.outcome import Outcome
from bot.failure.signature import complaint, is_statement, own_words, signature_of, statement
from bot.inside.protocol import Precision
from bot.models.failure import Kind, Phase, Signature


@dataclass(frozen=True)
class Criterion:
    """A candidate is SAME if its failure is `reference` and its eager control passes.

    `across_forms`: the candidate may have another form than the script that showed the reference. `own_words`: what it has to say in the
    program's own words (empty: nothing). `eager_error`: what eager has to raise, if the failure is a missing error (empty: anything for the
    kind `no_raise`, else nothing). `control_may_end_later`: the original's control ends after the failure, at something that only the
    compiler makes, and so may a candidate's. `own_comparison`: the program compares numbers by a tolerance of its own. `eager_alone`: its
    settings ask for no float64. `own_verdict`: the exception, or the signal, is one by which the program itself says that a result is
    wrong; see `precision`. `refusal`: the program's own statement that rejects what the compiler gives it (empty: there is none, or its
    message says enough).
    """

    reference: Signature
    across_forms: bool = False
    own_words: str = ""
    eager_error: str = ""
    control_may_end_later: bool = False
    own_comparison: bool = False
    eager_alone: bool = False
    own_verdict: bool = False
    refusal: str = ""

    @property
    def kind(self) -> Kind:
        """The sort of the failure."""
        return self.reference.kind

    @property
    def precision(self) -> Precision | None:
        """What has to pass the script's own comparison in place of its compiled results, if the failure is about numbers.

        Eager has to be right: under a tolerance of the program's own, float64 has to pass; otherwise even what is as far from eager as
        rounding explains, and farther. Nothing has to pass if the program takes eager for right, whatever float64 says.
        """
        if self.eager_alone or not (self.kind is Kind.ACCURACY or self.own_verdict):
            return None
        return "fp64" if self.own_comparison or self.own_verdict else "spread"

    @property
    def may_depend_on_numbers(self) -> bool:
        """Whether the numbers that a program draws may decide whether it fails: they may if it fails when it runs, not when it is
        compiled."""
        return self.kind is Kind.ACCURACY or (self.reference.phase is Phase.RUN and self.kind.ends_it)

    def matches(self, signature: Signature, text: str) -> bool:
        """Whether the failure `signature`, with its traceback in `text`, is the one that is being minimized."""
        if self.own_words and own_words(signature, text) != self.own_words:
            return False
        # wrong numbers are another failure than a result that is missing altogether
        complaints = {complaint(self.reference), complaint(signature)} - {""}
        if len(complaints) > 1:
            return False
        if self.refusal and not is_statement(statement(text), self.refusal):
            return False
        return self.reference.same_across_forms(signature) if self.across_forms else self.reference.same(signature)

    def shows(self, outcome: Outcome) -> bool:
        """Whether the `outcome` of a run shows the failure."""
        signature = signature_of(outcome)
        return signature is not None and self.matches(signature, outcome.text)

    @property
    def misses_an_error(self) -> bool:
        """Whether the failure is that compiled code does not raise what eager raises."""
        return self.kind is Kind.NO_RAISE or bool(self.eager_error)

    def raises_alike(self, control: Outcome) -> bool:
        """Whether eager, in this outcome of a `control`, raises what it raised in the original program, if that is known."""
        return control.raised > 0 and self.eager_error in ("", control.error)
