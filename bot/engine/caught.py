"""A program that caught the compiler's exception and then failed in its own words, exited with a status, or ended well; or that passes when
run alone."""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.engine.capture.region import Capture
from bot.engine.options import Ended
from bot.engine.prints import other_results
from bot.failure.device_errors import held_by_others, is_out_of_memory
from bot.failure.machine_faults import last_line
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.failure.traceback import HEADER, exceptions, plain
from bot.models.failure import shortened

FULL = "the GPU is full"
FREE_IT = "free it, or name another one with CUDA_VISIBLE_DEVICES"
_SAID = 200  # characters of torch's error, which goes on with advice
# What an assertion about numbers says, in its message or its source; one that an empty list equals what was collected is not about any.
_OF_NUMBERS = re.compile(
    r"\b(?:\w*all_?close|is_?close|assert_close|(?:array_)?equal)\(|\bassert\w*[eE]qual\((?![^\n]{0,300}(?:\[\]|\{\})\)[ ]*$)"
    r"|\bnot (?:close|equal)\b|\b[mM]ismatch",
    re.MULTILINE,
)


def for_what_it_caught(
    found: Capture, script: str, fallen_back: Callable[[], Capture], compared: Callable[[Capture], Capture] = lambda one: one
) -> Capture:
    """The capture with the compiler's exception that the program caught as its failure, if without that it ends well: then it failed for
    that, whatever it says. Otherwise the capture as it was `found`, with its numbers compared.

    Args:
        found: The capture of a program that failed in its own words.
        script: The name of its file.
        fallen_back: Runs it once more, with what the compiler rejects run in eager.
        compared: Adds the regions whose numbers are wrong. An assertion may be about those, even if the program caught something before.
    """
    if found.signature is None or "AssertionError" not in found.signature.exception:
        return compared(_failed_for(found, script, fallen_back))
    known = compared(found)
    # what it caught came before, and a graph that was traced wrong computes what it says
    of_numbers = known.wrong or _OF_NUMBERS.search(plain(found.outcome.text).rpartition(HEADER)[2])
    taken = found if of_numbers else _failed_for(found, script, fallen_back)
    return known if taken is found else taken


def _failed_for(found: Capture, script: str, fallen_back: Callable[[], Capture]) -> Capture:
    if not found.behind:
        return found
    again = fallen_back()
    if again.outcome.status != "ok" or again.signature is not None:
        return found
    outcome = found.outcome.model_copy(update={"status": "raised", "text": found.behind})
    of_compiler = {"outcome": outcome, "signature": signature_of(outcome, script=script), "ended": found.outcome}
    return found.model_copy(update={**of_compiler, "own_verdict": False, "own_code": False})


def ends_so_anyway(found: Capture, script: str, fallen_back: Callable[[], Capture]) -> bool:
    """Whether the program ends in the same way without the exception that it caught: it handled that, and fails for another reason.

    Args:
        found: The capture whose failure is taken to be the exception that the program caught.
        script: The name of the program's file.
        fallen_back: Runs it once more, with what the compiler rejects run in eager.
    """
    ended = found.ended
    if ended is None or found.behind or found.child or ended.status not in ("exit", "raised") or len(exceptions(plain(ended.text))) > 1:
        return False  # an error raised from it, or while it was handled, follows from it, and so does one that was not there without it
    own, again = signature_of(ended, script=script), fallen_back()
    # another exception may have left the compiler where there is nothing to fall back to, as in a backward
    return again.ended is None and own is not None and again.signature is not None and own.same_across_forms(again.signature)


def passes(found: Capture, without: Outcome) -> str:
    """What to say about a program that passes.

    Args:
        found: The capture of the program, which ended well.
        without: How it ended without the compiler.
    """
    often = f" in {found.runs} runs" if found.runs > 1 else ""
    if found.off:
        return f"the program passes here{often}, but nothing is compiled: {found.off} turns the compiler off"
    ended = {"raised": last_line(without), "exit": f"it ends with status {without.exit}"}.get(without.status, "")
    # an error that the compiler swallows is a failure only if the program expects it; nothing is known about its other assertions
    asserts = "; a program that asserts this can be minimized" if without.raised else ""
    asserts = f", but not without the compiler: {ended}{asserts}" if ended else ""
    # a test of what the compiler rejects ends well; so does a script that prints the error
    lives = f", though it went on after what the compiler raised ({found.caught}): a program that ends with that can be minimized"
    if found.swallows:
        lives = f", though Dynamo swallowed what the compiler raised ({found.caught}): without suppress_errors it can be minimized"
    if without.raised:  # a program that let the error through might well fail in eager
        lives = f", though it went on after an error ({found.caught}); without the compiler something of what it compiles raises as well"
    whole = "; integral or boolean results of what it compiles differ from eager's: --accuracy strict counts these" if found.whole else ""
    # what a program prints of an error that it does not get is in other words
    other = other_results(found.prints, without.stdout, words=without.raised > 0) if without.status == "ok" else ""
    other = f"; {other}; if that is wrong, let the program assert what is right" if other else ""
    return f"the program passes here{often}{lives if found.caught else asserts}{whole}{other}"


def unless_alone(refusal: Ended, found: Capture, without: Outcome, alone: Callable[[], Capture]) -> Ended:
    """What to say about a program that fails without the compiler: the `refusal`, unless it passes when run without hooks.

    A capture turns torch's graph caches off, and a program may need what they hold.

    Args:
        refusal: What to say if it fails with the compiler as well.
        found: The capture of the program.
        without: How it ended without the compiler.
        alone: Runs it once more, as its user does.
    """
    failed = found.outcome.status != "ok" and refusal.code in ("fails_in_eager", "fails_before_compile")
    if not failed or alone().outcome.status != "ok":
        return refusal
    said = "the program passes here, but it fails while its graphs are captured (with torch's graph caches off) and without the compiler"
    return Ended("not_reproduced", "passes", f"{said}: {last_line(without)}")


def had_no_room(outcome: Outcome) -> bool:
    """Whether the run with this `outcome` ended because a GPU had no room for a tensor."""
    failure = signature_of(outcome)
    return failure is not None and is_out_of_memory(failure)


def refuse_if_filled(*outcomes: Outcome) -> None:
    """Nothing is said about a program of which one of the `outcomes` is that its GPU had no room, because of what others hold there.

    Raises:
        Ended: others hold it.
    """
    for outcome in filter(had_no_room, outcomes):
        if others := held_by_others(outcome.text):
            said = f"the GPU is full: other processes hold some {others >> 30} GiB of it; {FREE_IT}: {shortened(last_line(outcome), _SAID)}"
            raise Ended("error", "machine_fault", said, machine_fault=FULL)


def with_room(again: Callable[[], Capture], alone: Callable[[Capture], Capture]) -> Capture:
    """A program that had no room on its GPU, captured again with the GPU to itself: the first time, its control ran at the same time, and
    the inputs of its regions were kept on the GPU.

    Args:
        again: Captures it once more, with neither.
        alone: Runs it as its user does, since the hooks themselves hold memory.

    Raises:
        Ended: it passes alone, and its results cannot be examined.
    """
    found = again()
    if not had_no_room(found.outcome):
        return found
    plain = alone(found)
    if plain.outcome.status == "ok":
        said = "the program passes here, but it fills its GPU: there is no room for what captures its graphs, and none was compared"
        raise Ended("not_reproduced", "passes", said)
    return found if plain.outcome.cut or had_no_room(plain.outcome) else plain
