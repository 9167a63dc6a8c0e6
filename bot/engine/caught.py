"""A program that caught the compiler's exception and then failed in its own words, or with a status: whether it failed for that."""

from __future__ import annotations

from collections.abc import Callable

from bot.engine.capture.region import Capture
from bot.failure.signature import signature_of
from bot.failure.traceback import exceptions, plain


def ends_so_anyway(found: Capture, script: str, fallen_back: Callable[[], Capture]) -> bool:
    """Whether the program ends in the same way without that exception: it handled it, and fails for something else.

    Args:
        found: The program, whose failure is taken to be the exception that it caught.
        script: Its file's name.
        fallen_back: Runs it once more, what the compiler refuses in eager.
    """
    ended = found.ended
    if ended is None or found.child or ended.status not in ("exit", "raised") or len(exceptions(plain(ended.text))) > 1:
        return False  # what was raised from it, or while it was handled, follows from it
    own, again = signature_of(ended, script=script), fallen_back()
    # another exception may have left the compiler where nothing can be run in its place, as in a backward
    return again.ended is None and own is not None and again.signature is not None and own.same_across_forms(again.signature)
