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
from bot.action.ci.lines import title
from bot.action.ci.python_words import HEADER, JOINTS
from bot.action.ci.told_errors import COMPILING, EAGER, FAILS, TO_DO, WENT_ON
from bot.action.ci.tracebacks import COMPILERS, MAX_TEXT, PrintedTraceback, is_whole

_OF_COMPILER = re.compile(
    r"torch[\\/.](?:_(?:dynamo|inductor|functorch|export|subclasses)|export|fx[\\/.]experimental)|(?:-packages|[\\/]torchdynamo)[\\/]torch(?:dynamo|inductor)[\\/]"
    rf"|(?<!test_)torchinductor_|[\\/]inductor_cache[\\/]|triton|\b{COMPILERS}\b|{ADVICE}|\n{EXPLAINS}|{HANDS_OVER}|{OVERWRITTEN}|{STRIDES}|{TRACERS}|{TRACED}"
    r"|\bUnsupported: [^\n]{1,2000}\n {0,4}Explanation: |torch_dynamo_resume_in_|<(?:graph break|resume) in "
    r"|SubprocException|backend='[^'\n]{1,300}' raised:"
)
# What nothing but the compiler raises.
_RAISED = CLASSES | {"Unsupported"}
# How it is said that compiling fails.
_FAILING = re.compile(
    rf"{FAILS.pattern}|\berrs\b|\b(?:can't|cannot|could(?:n't| not)|unable to)\b|\b(?:does|do|did)(?:n't| not) (?:seem to |appear to )?work"
    r"|\bnot working\b|\bincompatib|\b(?:assert|abort|break)s\b|\bbroken\b",
    re.IGNORECASE,
)
# A line of a program, or of a log.
_NO_WORDS = re.compile(
    r" {2}|.{0,200}\b(?:[WIVDE]\d{4} \d\d:|WARNING|INFO|DEBUG|Warning:)\b|(?:import|from|def|@|[+-]\s)|[\w.]{1,60} ?[=(]|E  |>  "
)
# Sentences, and parts of one that tell of two things.
_SENTENCES = re.compile(r"(?<=[.!?]) | but |[,;] (?:while|whereas) ")
MAX_SAID = 2_000
# What a program makes with the compiler; a module may compile itself. A function that it compiles; and what a frame shows of the source.
_NAME = re.compile(
    r" {0,12}(?:(?P<name>[A-Za-z_][\w.]{0,100}) ?= ?torch\.(?:compile|export\.export)\("
    r"|(?P<of>[A-Za-z_][\w.]{0,100}?)(?:\.forward)?\.compile\()"
)
_DECORATED = re.compile(r" {0,12}@torch\.compile\b")
_FUNCTION = re.compile(r" {0,12}(?:async )?def (\w{1,100})\(")
_SOURCE = re.compile(r'^  File "[^"\n]{1,1000}", line \d{1,9}, in [^\n]{1,200}\n {4}([^\n]{1,2000})', re.MULTILINE)
# A file of the program's that is called so.
_OWN_PATH = re.compile(
    r'^  File "(?![^"\n]{0,500}(?:(?:site|dist)-packages|[\\/]torch)[\\/])[^"\n]{0,500}(?:inductor|torch_?compile)', re.MULTILINE
)
# A graph that Dynamo made, which has its names, and in which a backend parts it.
_GRAPH = re.compile(
    r'^  File "<eval_with_key>[^"\n]{0,20}", line \d{1,9}, in forward\n {4}[^\n]{0,500}\b(?:submod_\d{1,9}|[lL]_self_modules_)',
    re.MULTILINE,
)
_ERROR = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,9}[A-Z]\w{0,60}(?:Error|Exception): \S")
_TICKED = re.compile(rf"` {{0,2}}(?P<said>{_ERROR.pattern}[^\n`]{{0,1000}})`")
_ANY = re.compile(rf"\b{_ERROR.pattern}")
_TO_GO = r"(?! to (?!compile|export|trace|run|load|lower|generate)\w)"
# What happened, by itself: not what is said of errors, or in a list, not what is asked, and not that it is slow, or fails to be fast.
_HAPPENS = re.compile(
    rf"^(?!\* |.*\?$).*?\b(?:fail(?:s|ed|ing|ures?)?{_TO_GO}|crash(?:es|ed|ing)?|rais(?:es|ed)|thr(?:ows|ew)"
    r"|seg(?:mentation )?fault(?:s|ed|ing)?"
    r"|(?:errors?|exceptions?)(?! (?:messages?|handl\w{1,4}|types?|codes?|class(?:es)?|reports?|paths?|logs?)\b))\b",
    re.IGNORECASE,
)
# How a title says what fails, as it is: not what should be done about it, nor when something else is.
_HEADLINE = re.compile(
    rf"\b(?:fail(?:s|ed|ing){_TO_GO}|crash(?:es|ed|ing)|raise[sd]|throws|threw|segfault(?:s|ed|ing)|err(?:s|ors? out)|\w+s fail)\b"
    r"|\b(?:causes?|leads? to|gives?|reports?|seems? to) (?:an? |the )?(?:\w+ )?(?:crash|errors?|exceptions?|failures?|fail)\b"
    r"|\b(?:(?:errors?|exception|failure|crash) (?:when|while|at|with|after|during|caused)\b)"
    r"|\b(?:compile|dynamo|inductor|export) (?:error|failure|crash)$",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"\b(?:when|where|whether|why|how|what|which|that|does|is)\b|\?$", re.IGNORECASE)
# What parts a report of a failure; and what somebody says of what they met.
_REPORT = re.compile(r"#{1,6} .{0,40}\b(?:bug|what happened|error (?:logs?|messages?)|current behaviou?r)\b", re.IGNORECASE)
_MET = re.compile(
    r"\b(?:I|[Ww]e)\b.{0,150}?\b(?:g[eo]t|getting|see|saw|seeing|hit|hitting|encounter(?:ed|ing)?|ran into)\b"
    r"|\bg[ai]ve?s? (?:me|us) "
    r"|^[Gg]etting |\bfails with (?:this|the|an|the following) error\b"
)
_TOLD = "the text tells that compiling fails"
_COMPILES = "the log ends within a traceback, below what the program compiles"
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
    told = told or next(told_errors.named(lines), None) or next(told_errors.headed(lines), None)
    if told is None:
        return cut
    raised = told.text.partition("\n")[2]
    return replace(cut, text=f"{cut.text}\n{raised}", seen=Seen.LOGGED, note=told.note)


def told(shown: Failure, lines: list[str]) -> Iterator[Failure]:
    """The failure that is `shown` up to a frame that is not the compiler's, where the `lines` of somebody's text name what was raised, or
    say that compiling fails.
    """
    found = next(told_errors.named(lines), None) or next(told_errors.titled(lines), None)
    if found:
        yield replace(shown, text=found.text, seen=found.seen, note=found.note)
    elif '  File "' in shown.text and not ends_at_import(shown.text):
        compiles = _OWN_PATH.search(shown.text) or _GRAPH.search(shown.text) or _calls_compiled(shown.text, lines)
        note = _SAID if any(map(_says, lines)) else _COMPILES if compiles else ""
        if note:
            yield replace(shown, seen=Seen.LOGGED, note=note)


def raised(lines: list[str]) -> Iterator[Failure]:
    """The only error in such `lines` of somebody's text, of any class, which shows no traceback and says that compiling fails; or the one
    in ticks in a sentence that says so.
    """
    ticked = [(line, told["said"]) for line in lines if "Error: " in line and (told := _TICKED.search(line[:MAX_SAID]))]
    if any(map(_says, lines)):
        found = {line for line in lines if _ERROR.match(line[:MAX_SAID])} or {said for _, said in ticked}
    else:
        found = {said for line, said in ticked if _says(line.replace(said, ""))}
    if len(found) == 1:
        error = found.pop()
        if not told_errors.is_of_others(error):
            yield Failure("a program", "", f"{HEADER}\n{error}", seen=Seen.LOGGED, note=_TOLD)


def unshown(lines: list[str]) -> Iterator[Failure]:
    """The failure of which the words in such `lines` say that compiling fails, and nothing more: there is no error in them.

    A change says so of what it mends, a comment of what others did, documentation of what may happen: what counts is a title, a report's
    words, and what somebody met.
    """
    head = title(lines)
    if TO_DO.match(head) or WENT_ON.search(head) or any(_ANY.search(line[:MAX_SAID]) for line in lines):
        return
    # what is fenced is a program, or a log
    words = [line for part in "\n".join(lines).split("\n```\n")[::2] for line in part.split("\n")]
    reports = any(map(_REPORT.match, words))
    if _entitles(head) or any((reports or _MET.search(line)) and _says(line, _HAPPENS) for line in words if line != head):
        yield Failure("a program", "", "", seen=Seen.LOGGED, note=f"{_TOLD}, and shows no error")


def _calls_compiled(traceback: str, lines: list[str]) -> bool:
    """Whether what a `traceback` shows of the program's source has the name of something that the program in such `lines` compiles."""
    names = {found["name"] or found["of"] for line in lines if (found := _NAME.match(line[:MAX_SAID]))}
    # what has a part that is compiled
    names |= {name.partition(".")[0] for name in names} - {"self"}
    names |= {found[1] for above, line in pairwise(lines) if _DECORATED.match(above) and (found := _FUNCTION.match(line[:MAX_SAID]))}
    sources = _SOURCE.findall(traceback)
    return any(re.search(rf"(?<![\w.]){re.escape(name)}(?:\.\w{{1,60}})?[(),]", source) for name in names for source in sources)


def _entitles(head: str) -> bool:
    """Whether a title `head` says that compiling fails."""
    found = _HEADLINE.search(head[:MAX_SAID])
    return found is not None and not _BESIDE.search(head[: found.start()]) and not head.endswith("?") and _says(head, _HEADLINE)


def _says(line: str, how: re.Pattern[str] = _FAILING) -> bool:
    """Whether a `line` of words says that compiling fails, as `how` finds it, and not that eager does, or that it went on."""
    words = line[:MAX_SAID]
    fails = any(COMPILING.search(said) and how.search(said) and not EAGER.search(said) for said in _SENTENCES.split(words))
    return fails and not (_NO_WORDS.match(words) or WENT_ON.search(words))
