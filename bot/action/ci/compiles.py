"""Whether a failing test compiles anything, by what the log shows of it."""

from __future__ import annotations

import re

from bot.action.ci.failing_test import Failure

_MENTIONS = re.compile(r"torch/_(?:dynamo|inductor|functorch|export)/|torchinductor_|torch\.compile\(|aoti_compile|torch\.export")
# The compiler's own files: the rest of functorch runs in eager.
_FILES = re.compile(
    r"torch/(?:_(?:dynamo|inductor|export)|export)/|torch/_functorch/(?:_aot_autograd/|(?:aot_autograd|partitioners|compilers)\.py)"
    r"|torchinductor_"
)
_FRAME = re.compile(r'^ {0,40}File "(?P<path>[^"\n]{1,1000})", line \d', re.MULTILINE)
# What is never compiled, as a function that is checkpointed, is called in eager through this file, and then through one of Dynamo's.
_NEVER = "torch/_compile.py"
# What a test that compiles is called, or is run with.
_NAMED = re.compile(r"compil|inductor|dynamo|export|aoti|(?<![a-z])aot(?![a-z])|cuda_?graph|flex_?attention", re.IGNORECASE)


def on_stack(text: str) -> bool:
    """Whether a frame in the traceback `text` is the compiler's; where there are no frames, whether it is spoken of."""
    before = None
    for found in _FRAME.finditer(text):
        path = found["path"].replace("\\", "/")
        if _FILES.search(path) and not (before or "").endswith(_NEVER):
            return True
        before = path
    return before is None and bool(_MENTIONS.search(text))


def compiles(failure: Failure) -> bool:
    """Whether anything says that the test compiles: its name, its command, its job, its source, its stack.

    Where the log shows no stack of the `failure`, nothing can be said, and it may.
    """
    words = (failure.test, failure.name, failure.job, failure.hint.program, *failure.hint.variables)
    return failure.compiles or not _FRAME.search(failure.text) or any(map(_NAMED.search, words)) or on_stack(failure.text)
