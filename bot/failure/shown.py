"""Whether a failure is the one that a log showed. A log shows less than a run of ours: frames are left out, messages are cut off."""

from __future__ import annotations

import re

from bot.models.failure import HEAP, Kind, Signature

_NUMBERS = re.compile(r"Tensor-likes are not|Scalars are not|Mismatched elements|not close|allclose|not equal")
_MEMORY = ("SIGSEGV", "SIGBUS")
# The beginning of a message says enough if it has at least this many characters.
MIN_MESSAGE = 12


def may_be(shown: Signature, found: Signature) -> bool:
    """Whether the failure `found` by a run may be the one `shown` by a log; true unless they contradict each other.

    Where it failed is not compared, since a log without the compiler's frames does not show it.
    """
    if _is_about_numbers(shown) and _is_about_numbers(found):
        return True
    if {shown.kind, found.kind} == {Kind.EXCEPTION, Kind.ACCURACY}:
        # a run knows that the program complained about numbers
        return bool(shown.exception and found.exception) and _same_class(shown, found) and _same_message(shown.message, found.message)
    if shown.kind is not found.kind:
        return False
    if shown.kind is Kind.CRASH:
        return shown.signal is None or found.signal is None or shown.signal == found.signal or (_is_memory(shown) and _is_memory(found))
    if shown.kind is not Kind.EXCEPTION:
        return True
    return _same_class(shown, found) and _same_message(shown.message, found.message)


def _is_about_numbers(signature: Signature) -> bool:
    if signature.kind is Kind.EXCEPTION:
        return signature.exception[-1:] == ("AssertionError",) and bool(_NUMBERS.search(signature.message))
    return signature.kind is Kind.ACCURACY


def _is_memory(signature: Signature) -> bool:
    return signature.signal in _MEMORY or signature.message == HEAP


def _same_class(shown: Signature, found: Signature) -> bool:
    """Whether the last class of one is among those of the other: a message that is cut off names fewer classes."""
    if not shown.exception or not found.exception:
        return True
    return shown.exception[-1] in found.exception or found.exception[-1] in shown.exception


def _same_message(shown: str, found: str) -> bool:
    first, other = (text.split("\n", 1)[0].rstrip(". ") for text in (shown, found))
    short, long = sorted((first, other), key=len)
    return not short or first == other or (len(short) >= MIN_MESSAGE and long.startswith(short))
