"""What is told of a failure whose traceback is cut off before what was raised: above it, in a chain; or by somebody's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from bot.action.ci import told_errors
from bot.action.ci.compiles import ADVICE, CLASSES, EXPLAINS, HANDS_OVER, OVERWRITTEN, STRIDES, TRACED, TRACERS, ends_at_import
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.judge import is_compiled, sign
from bot.action.ci.python_words import HEADER, JOINTS
from bot.action.ci.told_errors import MAX_LINE
from bot.action.ci.tracebacks import COMPILERS, MAX_TEXT, PrintedTraceback, is_whole
from bot.failure.traceback import frame_place

_OF_COMPILER = re.compile(
    r"torch[\\/.](?:_(?:dynamo|inductor|functorch|export|subclasses)|export|fx[\\/.]experimental)|(?:-packages|[\\/]torchdynamo)[\\/]torch(?:dynamo|inductor)[\\/]"
    rf"|(?<!test_)torchinductor_|[\\/]inductor_cache[\\/]|triton|\b{COMPILERS}\b|{ADVICE}|\n{EXPLAINS}|{HANDS_OVER}|{OVERWRITTEN}|{STRIDES}|{TRACERS}|{TRACED}"
    r"|\bUnsupported: [^\n]{1,2000}\n {0,4}Explanation: |torch_dynamo_resume_in_|<(?:graph break|resume) in "
    r"|SubprocException|backend='[^'\n]{1,300}' raised:"
)
# What nothing but the compiler raises.
_RAISED = CLASSES | {"Unsupported"}
# What a program makes with the compiler; a module may compile itself. A function that it compiles; and what a frame shows of the source.
_NAME = re.compile(
    r" {0,12}(?:(?P<name>[A-Za-z_][\w.]{0,100}) ?= ?torch\.(?:compile|export\.export)\("
    r"|(?P<of>[A-Za-z_][\w.]{0,100}?)(?:\.forward)?\.compile\()"
)
_DECORATED = re.compile(r" {0,12}@torch\.compile\b")
_FUNCTION = re.compile(r" {0,12}(?:async )?def (\w{1,100})\(")
_SOURCE = re.compile(rf"^  {frame_place()}, in [^\n]{{1,200}}\n {{4}}([^\n]{{1,2000}})", re.MULTILINE)
# A file of the program's that is called so, or a function of its tests.
_OWN_PATH = re.compile(
    r'^  File "(?![^"\n]{0,500}(?:(?:site|dist)-packages|[\\/]torch)[\\/])(?:[^"\n]{0,500}(?:inductor|torch_?compile)'
    r'|[^"\n]{1,500}", line \d{1,9}, in (?=\w{0,60}test)\w{1,60}_(?:torch_?)?compiled?(?:_|$))',
    re.MULTILINE,
)
# A graph that Dynamo made, which has its names, and in which a backend parts it.
_GRAPH = re.compile(
    "^  " + frame_place(r'<eval_with_key>[^"\n]{0,20}') + r", in forward\n {4}[^\n]{0,500}\b(?:submod_\d{1,9}|[lL]_self_modules_)",
    re.MULTILINE,
)
# A traceback up to its last frame, with the source of that one.
_FRAMES = re.compile(r'.*\n  File "[^\n]+(?:\n {4}[^\n]+){0,2}', re.DOTALL)
_COMPILES = "the log ends within a traceback, below what the program compiles"
_SAID = f"{told_errors.TOLD}, and the log ends within a traceback"
_TOLD_ABOVE = "the text tells what was raised, and the log ends within a traceback"


def mentions_compiler(text: str) -> bool:
    """Whether anything of the compiler's is in the traceback `text`."""
    return bool(_OF_COMPILER.search(text))


def is_of_compiler(block: PrintedTraceback) -> bool:
    """Whether what the `block` shows was raised in the compiler, or in what it made."""
    failure = Failure("", "", block.text)
    return mentions_compiler(block.text) and is_compiled(sign(failure), failure)


def caused(failure: Failure) -> Failure:
    """A `failure` whose traceback is cut off within a chain, by what the compiler raised above, or by those frames where it has none of
    its own; any other as it is.
    """
    joints = (failure.text.rfind(f"\n{joint}\n") for joint in JOINTS)
    above = replace(failure, text=failure.text[: max(*joints, 0)].rstrip())
    if not above.text or is_whole(failure.text) or not is_whole(above.text):
        return failure
    signature = sign(above)
    if signature and _RAISED.intersection(signature.exception) and is_compiled(signature, above):
        return above
    # any other class may be caught
    frames = _FRAMES.match(above.text) if failure.text.endswith(f"{JOINTS[1]}\n\n{HEADER}") else None
    return replace(failure, text=frames[0]) if frames else failure


def completed(cut: Failure, lines: list[str], printed: tuple[PrintedTraceback, ...]) -> Failure:
    """A failure whose traceback is `cut` off, with what was raised, where a block of the `printed` that has no frames shows that, or the
    `lines` of somebody's text, or its title, say it.
    """
    if len(lines) > MAX_TEXT:
        return cut
    bare = (block for block in printed if '  File "' not in block.text and is_whole(block.text))
    said = {block.text for block in bare if is_of_compiler(block)}
    told = next((replace(cut, text=text, note=_TOLD_ABOVE) for text in said), None) if len(said) == 1 else None
    told = told or next(told_errors.of_cut(lines, compiled=True), None)
    return replace(cut, text=f"{cut.text}\n{told.text.partition(chr(10))[2]}", seen=Seen.LOGGED, note=told.note) if told else cut


def told(shown: Failure, lines: list[str]) -> Iterator[Failure]:
    """The failure that is `shown` up to a frame that is not the compiler's, where the `lines` of somebody's text name what was raised, or
    say that compiling fails.
    """
    if found := next(told_errors.of_cut(lines), None):
        yield replace(shown, text=found.text, seen=found.seen, note=found.note)
    elif '  File "' in shown.text and not ends_at_import(shown.text):
        compiles = _OWN_PATH.search(shown.text) or _GRAPH.search(shown.text) or _calls_compiled(shown.text, lines)
        note = _SAID if told_errors.says(lines) else _COMPILES if compiles else ""
        if note:
            yield replace(shown, seen=Seen.LOGGED, note=note)


def _calls_compiled(traceback: str, lines: list[str]) -> bool:
    """Whether what a `traceback` shows of the program's source has the name of something that the program in such `lines` compiles."""
    names = {found["name"] or found["of"] for line in lines if (found := _NAME.match(line[:MAX_LINE]))}
    # what has a part that is compiled
    names |= {name.partition(".")[0] for name in names} - {"self"}
    names |= {found[1] for above, line in pairwise(lines) if _DECORATED.match(above) and (found := _FUNCTION.match(line[:MAX_LINE]))}
    sources = _SOURCE.findall(traceback)
    return any(re.search(rf"(?<![\w.]){re.escape(name)}(?:\.\w{{1,60}})?[(),]", source) for name in names for source in sources)
