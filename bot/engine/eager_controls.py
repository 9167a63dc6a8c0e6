"""Decides whether a failure is the compiler's when the plain eager control cannot: runs the program in eager as compiled code would run."""

from __future__ import annotations

from collections.abc import Callable

from bot.engine.capture.region import Capture, nearness
from bot.engine.options import Ended
from bot.failure.machine_faults import last_line
from bot.failure.outcome import Outcome
from bot.failure.signature import raises_by_itself, signature_of
from bot.inside.protocol import ControlOption
from bot.models.failure import Phase, Signature
from bot.oracle.judge import cannot_be_float64

# Runs the program's control with an option.
Control = Callable[[ControlOption], Outcome]
_ASKS = "it asks whether it is being compiled (torch.compiler.is_compiling), and what it does then"


def right_numbers_pass(found: Capture, script: str, control: Control) -> bool | None:
    """Whether the program, whose file is called `script`, passes (its own comparison, say) with float64 in place of compiled results and
    whole numbers as rounding may leave them; or, if float64 is not possible, with eager's results moved by their rounding. `control` runs
    either. None if its own code still fails as it was `found` to fail, which tells nothing, although some numbers are wrong. Raises Ended
    if it still fails as it was `found` to fail, and no compiled region is clearly farther from float64 than eager is: with another code if
    mere copies of eager's results make it fail too.
    """
    outcome = control("--fp64")
    moved = bool(cannot_be_float64(outcome))
    if moved:
        outcome = control("--moved")
    if not _is_alike(outcome, found.signature, script):
        return outcome.status == "ok"
    # the program's own code may reject float64, which is another type
    if found.own_code and not (moved or _is_alike(control("--moved"), found.signature, script)):
        return False
    if found.own_code and found.compared:
        return None
    said = f"{found.fails}, but it also fails "
    if not moved and control("--exact").status == "ok":
        whole = "without the compiler if the integers that rounding decides are changed as far as eager's own rounding may change them"
        raise Ended("not_reproduced", "fails_in_eager", f"{said}{whole}")
    right = "eager's, each result moved by a unit in its last place" if moved else "float64"
    said += f"with {right} in place of the compiled results: "
    # a library may ask too, and do the same either way
    asks = bool(outcome.asked) and control("--moved-untold" if moved else "--untold").status == "ok"
    if not asks and _is_alike(control("--copied"), found.signature, script):
        said = f"{found.fails}, but it also fails without the compiler if the results are copies of eager's"
        why = "it looks at something other than their numbers, for which there is no stand-in to compare with"
        raise Ended("error", "not_understood", f"{said}: {why}")
    alike = "eager fails in the same way" if found.own_code else "eager misses it as well"
    said += f"{_ASKS} is the same without the compiler" if asks else alike
    if found.errors is not None:
        said += f"; {nearness(*found.errors)}"
    raise Ended("not_reproduced", "fails_in_eager", said)


def judge_compiled_branch(failure: Signature, script: str, plain: Outcome, control: Control) -> None:
    """Checks whether eager also raises what the program raises only when it is compiled.

    Another error there, such as one of a kernel that only compiled code launches, counts as one of compiled code: plain eager passes, and
    the repro shows the branch.

    Args:
        failure: How the program fails.
        script: The name of its file.
        plain: How its plain control ended.
        control: Runs another one.

    Raises:
        Ended: eager raises it too, by a `raise` or an `assert` of the program's own.
    """
    if not plain.asked or plain.status != "ok" or failure.phase is not Phase.RUN or not failure.kind.ends_it:
        return
    told = control("--eager")
    if _is_alike(told, failure, script) and raises_by_itself(told.text, ("raise", "assert")):
        raise Ended("not_reproduced", "fails_in_eager", f"{_ASKS} fails in the same way without the compiler: {failure.line()}")


def worded(refusal: Ended, compiled: Outcome, plain: Outcome, control: Control) -> Ended:
    """A `refusal` due to a failed control, which ended as `plain`, in words that are true of it; `compiled` is how the program itself
    ended.

    The control wraps the program's module as `torch.compile` does, since programs look for the wrapper's names. A program that fails
    because of these names does not fail in eager, but it is not compiled code that fails either. `control` runs another control.
    """
    if refusal.code != "fails_in_eager" or plain.status not in ("raised", "exit"):
        return refusal
    bare = control("--bare")
    if bare.cut or bare.status in ("timeout", "infra"):
        said = f"the program fails with the compiler taken out ({last_line(plain) or 'nothing was printed'}), but there was no time to see"
        return Ended(
            "error", "budget", f"{said} whether it does without the module that torch.compile returns; a longer --budget gives it more"
        )
    if bare.status != "ok":
        return refusal
    cause = "torch.compile returns a module around the program's own, which names the parameters _orig_mod.NAME"
    said = f"compiled code is not to blame: {cause}. With such a module around eager the program fails as well, and without it, it passes"
    own, around = (last_line(one) or "nothing was printed" for one in (compiled, plain))
    # the stand-in for that module does not match it in everything that a library may look at
    return Ended(refusal.status, refusal.code, f"{said}; the error: {own}" + (f"; around eager: {around}" if around != own else ""))


def _is_alike(outcome: Outcome, failure: Signature | None, script: str) -> bool:
    seen = signature_of(outcome, script=script)
    return seen is not None and failure is not None and failure.same_across_forms(seen)
