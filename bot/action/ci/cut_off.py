"""What is told of a failure whose traceback is cut off before what was raised: above it, in a chain; or by somebody's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from bot.action.ci import told_errors
from bot.action.ci.compiles import ADVICE, CLASSES, EXPLAINS, HANDS_OVER, OVERWRITTEN, STRIDES, TRACED, TRACERS, ends_at_import
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.judge import is_compiled, sign
from bot.action.ci.lines import title
from bot.action.ci.python_words import JOINTS
from bot.action.ci.told_errors import FAILS, WENT_ON
from bot.action.ci.tracebacks import COMPILERS, MAX_TEXT, PrintedTraceback, is_whole

_OF_COMPILER = re.compile(
    r"torch[\\/.](?:_(?:dynamo|inductor|functorch|export|subclasses)|export|fx[\\/.]experimental)|(?:-packages|[\\/]torchdynamo)[\\/]torch(?:dynamo|inductor)[\\/]"
    rf"|(?<!test_)torchinductor_|[\\/]inductor_cache[\\/]|triton|\b{COMPILERS}\b|{ADVICE}|\n{EXPLAINS}|{HANDS_OVER}|{OVERWRITTEN}|{STRIDES}|{TRACERS}|{TRACED}"
    r"|\bUnsupported: [^\n]{1,2000}\n {0,4}Explanation: |torch_dynamo_resume_in_|<(?:graph break|resume) in "
    r"|SubprocException|backend='[^'\n]{1,300}' raised:"
)
# What nothing but the compiler raises.
_RAISED = CLASSES | {"Unsupported"}
# What somebody compiles with, in words, and how it is said that it fails; what tells of eager, too, or that this may happen. Another
# Dynamo is a server.
_COMPILING = re.compile(
    r"\b(?:py)?torch[. ]compil|\bcompiled[ _]autograd\b|\btorch\.export\b|\b(?:Torch)?(?:dynamo|[Ii]nductor)\b"
    r"|\b(?i:during|when|while|after) (?:I )?compil(?:e|ing|ation)\b"
)
_NOT_WORKING = re.compile(
    r"\berrs\b|\b(?:can't|cannot|could(?:n't| not)|unable to)\b|\b(?:does|do|did)(?:n't| not) (?:seem to |appear to )?work"
    r"|\bnot working\b|\bincompatib",
    re.IGNORECASE,
)
_EAGER = re.compile(r"\beager|\b(?:without|disabl\w{1,4}|turn\w{0,3} off|may|might|if|should|would|sometimes)\b", re.IGNORECASE)
# A line of a program, or of a log.
_NO_WORDS = re.compile(
    r" {2}|.{0,200}\b(?:[WIVDE]\d{4} \d\d:|WARNING|INFO|DEBUG|Warning:)\b|(?:import|from|def|@|[+-]\s)|[\w.]{1,60} ?[=(]|E  |>  "
)
MAX_SAID = 2_000
_SAID = "the text tells that compiling fails, and the log ends within a traceback"
_TOLD_ABOVE = "the text tells what was raised, and the log ends within a traceback"


def mentions_compiler(text: str) -> bool:
    """Whether anything of the compiler's is in the traceback `text`."""
    return bool(_OF_COMPILER.search(text))


def is_of_compiler(block: PrintedTraceback) -> bool:
    """Whether what the `block` shows was raised in the compiler, or in what it made."""
    failure = Failure("", "", block.text)
    return mentions_compiler(block.text) and is_compiled(sign(failure), failure)


def caused(failure: Failure) -> Failure:
    """A `failure` whose traceback is cut off within a chain, by what the compiler raised above; any other as it is."""
    joints = (failure.text.rfind(f"\n{joint}\n") for joint in JOINTS)
    above = replace(failure, text=failure.text[: max(*joints, 0)].rstrip())
    if not above.text or is_whole(failure.text) or not is_whole(above.text):
        return failure
    signature = sign(above)
    # any other class may be caught
    return above if signature and _RAISED.intersection(signature.exception) and is_compiled(signature, above) else failure


def completed(cut: Failure, lines: list[str], printed: tuple[PrintedTraceback, ...]) -> Failure:
    """A failure whose traceback is `cut` off, with what was raised, where a block of the `printed` that has no frames shows that, or the
    `lines` of somebody's text, or its title, say it.
    """
    if len(lines) > MAX_TEXT:
        return cut
    bare = (block for block in printed if '  File "' not in block.text and is_whole(block.text))
    said = {block.text for block in bare if is_of_compiler(block)}
    told = next((replace(cut, text=text, note=_TOLD_ABOVE) for text in said), None) if len(said) == 1 else None
    told = told or next(told_errors.named(lines), None)
    if told is None:
        return cut
    raised = told.text.partition("\n")[2]
    return replace(cut, text=f"{cut.text}\n{raised}", seen=Seen.LOGGED, note=told.note)


def told(shown: Failure, lines: list[str]) -> Iterator[Failure]:
    """The failure that is `shown` up to a frame that is not the compiler's, where the `lines` of somebody's text name what was raised, or
    say that compiling fails.
    """
    found = next(told_errors.named(lines), None)
    # what a title says may be somebody else's, below whose text another one is
    head = title(lines)
    if found:
        yield replace(shown, text=found.text, seen=found.seen, note=found.note)
    elif '  File "' in shown.text and not ends_at_import(shown.text) and any(_says(line) for line in lines if line is not head):
        yield replace(shown, seen=Seen.LOGGED, note=_SAID)


def _says(line: str) -> bool:
    """Whether a `line` of words says that compiling fails, and not that eager does, or that it went on."""
    words = line[:MAX_SAID]
    fails = _COMPILING.search(words) and (FAILS.search(words) or _NOT_WORKING.search(words))
    return bool(fails) and not (_NO_WORDS.match(words) or WENT_ON.search(words) or _EAGER.search(words))
