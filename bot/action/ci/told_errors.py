"""Errors of the compiler of which somebody tells in a sentence, or in a comment of a program, in a text that shows none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.action.ci.compiles import CHECKED, OVERWRITTEN, STRIDES, TRACERS
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.judge import is_compiled, sign, told_fault
from bot.action.ci.lines import title
from bot.action.ci.python_words import HEADER
from bot.action.ci.tracebacks import NAMED

MAX_LINE = 2_000

# A class of the compiler's, or any whose message is the compiler's.
_ANY = rf"[A-Z]\w{{0,60}}(?:Error|Exception)(?=: (?:Error: )?(?:{CHECKED}{TRACERS}|{OVERWRITTEN}|{STRIDES}))"
# One with its message, in ticks. A heading may name what a text is about, and not what happened; a change and a logger's line that is no
# error are no words of somebody's.
_TOLD = re.compile(rf"` {{0,2}}(?P<said>(?:{NAMED}|{_ANY}): [^\s`][^\n`]{{0,1000}})`")
# The same as the end of a line, in a sentence, behind a colon which is none of an error's, or behind what says that it is an error.
_BEHIND = re.compile(
    r"(?:^|[.!?] )(?:[^`\n]{1,200}(?<!Error)(?<!Exception)(?<!Failed)(?<!Unsupported): "
    r"|(?:[^`\n]{0,200}\W)?(?i:(?:this |the |an? )?(?:errors?|exception)|with) )"
    rf"(?:{NAMED} )?(?P<said>(?:{NAMED}|{_ANY}): [^\s`][^\n`]{{0,1000}})$"
)
# The same in a comment of a program, which is fenced; its message goes on in the comments below.
_COMMENT = re.compile(r" {0,40}# ?")
_SAID = re.compile(rf"{NAMED}: \S")
_FENCE = "```"
# What it says of a backend, with the class that that raised, in the same line, as a user interface shows it.
_BACKEND = re.compile(r"(?:^|[^`\w])(?P<said>backend='[^'\n]{1,100}' raised: [A-Z]\w{1,60}(?:Error|Exception): \S[^\n]{0,1000})")
# What Markdown and quotation marks put around words.
_MARKS = " `*'\"\u201d"
_UNSHOWN = "and the log does not show all of it"
FAILS = re.compile(
    r"\b(?:errors?|exceptions?|fail(?:s|ed|ing|ures?)?|rais(?:es|ed)|crash(?:es|ed|ing)?|thr(?:ows?|own|ew|owing)"
    r"|seg(?:mentation )?fault(?:s|ed|ing)?)\b",
    re.IGNORECASE,
)
# What somebody compiles with, in words, no path, and what tells of eager, too, or that something may happen. Another Dynamo is a server.
COMPILING = re.compile(
    r"\b(?i:(?:py)?torch[._ -]compil(?!er\.))|\b[Cc]ompiled[ _](?:autograd|graph)\b"
    r"|\b[Tt]orch export\b|\btorch\.(?:export\b|_(?:inductor|export)\.(?:aot|compil|export))"
    r"|(?<![\w/])(?:[Tt]orch[_ ]?[Dd]ynamo|dynamo|(?:[Tt]orch_?)?[Ii]nductor)\b"
    r"|\b(?i:during|when|while|after) (?:I )?compil(?:e|ing|ation)\b"
)
EAGER = re.compile(
    r"\beager|\bwithout\b(?=.{0,40}(?:compil|inductor|dynamo|export|\bit\b|\bthis\b))"
    r"|\b(?:disabl\w{1,4}|turn\w{0,3} off|may|might|if|should|would|sometimes)\b"
    # what is past, and what does not happen; what a compiler of C++ builds
    r"|\b(?:unrelated|previous(?:ly)?|used to|no (?:\w+ )?(?:errors?|fail\w*|crash\w*|exceptions?|more))\b"
    r"|\b(?:nvcc|cmake|setup\.py|wheels?|from source|extensions?)\b|(?:\bnot|n['\u2019]t|\bnever) (?:fail|crash|err|rais|throw)",
    re.IGNORECASE,
)
# What compiles; and the class that triton raises for any kernel.
COMPILED = re.compile(r"\btorch\.compile\b|\b(?:Torch)?[Ii]nductor\b")
_OF_TRITON = "CompilationError"
_NO_WORDS = re.compile(r"#|[+-]\s|.{0,200}\b(?:[WIVD]\d{4} \d\d:|WARNING|INFO|DEBUG)\b")
WENT_ON = re.compile(
    r"\b(?:fall(?:s|ing)?|fell) back\b|\bgraph[- ]breaks?\b|\bno longer\b|\b(?:fix|resolve?|mend)(?:e?s|e?d|ing)?\b", re.IGNORECASE
)
# A class of the compiler's, without its message, of which a sentence or a title says that it was raised; not that it should be, or is not.
_RAISED = re.compile(
    r"\b(?:(?:fail|crash|die|end|error)(?:e?s|e?d|ing)?(?: out| up)? with|rais(?:es|ed)|throws?|thrown|threw|g[eo]t|hits?|encounter(?:s|ed)"
    rf"|see|saw|reports?) (?:(?:an?|the|this|following) ){{0,2}}[`*]{{0,2}}(?P<named>{NAMED})\b"
    rf"|\b(?P<told>{NAMED})[`*]{{0,2}}(?: (?:error|exception))? (?:is|was|gets|has been) (?:reported|raised|thrown|shown)\b"
)
# A title that names a class of the compiler's, or any whose message is its, and goes on with the message; or with when it was raised,
# where it begins with the class, behind labels, or words tell of an error before it. The compiler's own words may deny something, but do
# not ask for it.
_LABELS = r"# (?:\[[^\]\n]{1,60}\]:? {0,2}){0,4}"
_TITLED = re.compile(
    rf"{_LABELS}(?P<before>[^\n]{{0,150}}?)(?<![\w.])(?P<named>{NAMED}|{_ANY})\b['\"\u201d>`*]{{0,3}}"
    r"(?:(?P<said>: {0,2}\S)| (?:with|when|while|in|on|for|during|after|at|using)\b| {0,2}(?:`|$))"
)
# One that begins with the compiler's message, without its class.
_MESSAGE = re.compile(rf"{_LABELS}(?P<said>{TRACERS}[^\n]{{0,1000}})")
# One that names any class with its message, beside what compiles.
_OTHER = re.compile(
    rf"{_LABELS}(?:[^\n]{{0,150}}?[^\w.\n])?(?P<said>[A-Z]\w{{1,60}}(?:Error|Exception)(?:(?:: \S|\([\"'])[^\n`]{{0,1000}}"
    r"|(?=`?(?: (?:in|on|at|when|while|with|during|after|due)\b|$))))"
)
_HEADED = re.compile(rf"{_LABELS}`?(?P<said>(?P<name>[A-Z]\w{{1,60}}(?:Error|Exception)): \S[^\n`]{{0,1000}})")
# Not of the compiler: what is not there; and what happens without it.
_OF_OTHERS = re.compile(
    r"Error: (?:cannot import name |No module named |module '|Error compiling objects for extension"
    r"|[^\n]{0,200}\bhas no attribute '_?(?:compile|dynamo|inductor)')|\b(?:without|eager)\b"
)
# One that says what is to be done does not say what happened.
TO_DO = re.compile(
    rf"{_LABELS}(?:\w{{1,30}}(?:\(\S{{1,30}}\))?: )?(?:add|allow|avoid|catch|check|clarify|disable|doc(?:ument)?s?|enable|ensure|explain"
    r"|handle|hide|implement|improve|introduce|make|move|prevent|print|re-?enable|remove|rename|replace|report|rewrite|show|skip|support"
    r"|suppress|tests?|turn|update|use|work ?around|wrap|xfail)(?:s|e?d|ing)?\b",
    re.IGNORECASE,
)
_ASKED = re.compile(r"\bshould\b", re.IGNORECASE)
_WAS_NOT = re.compile(r"n't\b|\b(?:not|never|without|should|must|expect(?:s|ed)?|would|could|instead|catch(?:es)?|caught)\b", re.IGNORECASE)


def named(lines: list[str], text: list[str] | None = None) -> Iterator[Failure]:
    """The failure whose class the first of such `lines` names, for a `text` (the same) whose tracebacks are cut off before it."""
    head = title(lines)
    for line in lines:
        said = line[:MAX_LINE]
        titled = _titled(said) if line is head else None
        found = titled or _RAISED.search(said)
        if found is None or _NO_WORDS.match(said.removeprefix("#")) or WENT_ON.search(said) or (not titled and _WAS_NOT.search(said)):
            continue
        name = found["named"] or found.groupdict()["told"]
        if name.endswith(_OF_TRITON) and not any(map(COMPILED.search, text or lines)):
            continue
        raised = f"{name}: {said[found.start('said') + 1 :].strip(_MARKS)}" if titled and found["said"] else name
        failure = Failure("a program", "", f"{HEADER}\n{raised}", seen=Seen.LOGGED, note=f"the text tells of {name}, {_UNSHOWN}")
        if is_compiled(sign(failure), failure):
            yield failure
            return


def titled(lines: list[str]) -> Iterator[Failure]:
    """The failure of which the title of such `lines` tells, for a text that shows nothing of it."""
    head = title(lines)[:MAX_LINE]
    if TO_DO.match(head):
        return
    found = list(named([head], lines))
    yield from found
    other = _OTHER.match(head) if COMPILING.search(head) and not is_of_others(head) else None
    said = _MESSAGE.match(head) or other
    if found or said is None or told_fault(head):
        return
    words = head[: said.start("said")]
    if not any(each.search(words) for each in (WENT_ON, _ASKED, EAGER)):
        yield Failure("a program", "", f"{HEADER}\n{said['said']}", seen=Seen.LOGGED, note=f"the title tells of an error, {_UNSHOWN}")


def is_of_others(error: str) -> bool:
    """Whether an `error` is none of the compiler's, but of what is not there, or of eager."""
    return bool(_OF_OTHERS.search(error[:MAX_LINE]))


def headed(lines: list[str]) -> Iterator[Failure]:
    """The failure with whose class, any, the title of such `lines` begins, for a text that shows where the compiler failed, and not how."""
    found = _HEADED.match(title(lines)[:MAX_LINE])
    if found:
        note = f"the title tells of {found['name']}, {_UNSHOWN}"
        yield Failure("a program", "", f"{HEADER}\n{found['said']}", seen=Seen.LOGGED, note=note)


def _titled(head: str) -> re.Match[str] | None:
    found = _TITLED.match(head)
    if found is None or _ASKED.search(head) or _WAS_NOT.search(found["before"]):
        return None
    return found if found["said"] or not found["before"].strip("`*") or FAILS.search(found["before"]) else None


def _was_raised(said: str, words: str) -> bool:
    return bool(_RAISED.search(said)) and not _WAS_NOT.search(words)


def failures(lines: list[str]) -> Iterator[Failure]:
    """The failure of which the last of such `lines` tells."""
    comments: list[str] = []
    fences = lines.count(_FENCE)
    for line in reversed(lines):
        said = line[:MAX_LINE]
        fences -= line == _FENCE
        comment = _COMMENT.match(said) if fences % 2 else None
        comments = [said[comment.end() :], *comments] if comment else []
        told, shown = _TOLD.search(said), _BACKEND.search(said)
        if told is None and not WENT_ON.search(said):
            told = _BEHIND.search(said)
        words = said.replace(told["said"], " ") if told else said
        if comments and _SAID.match(comments[0]):
            raised = "\n".join(comments)
        elif _NO_WORDS.match(said) or (told and (WENT_ON.search(words) or not (FAILS.search(words) or _was_raised(said, words)))):
            continue
        elif told:
            raised = told["said"]
        elif shown:
            raised = f"BackendCompilerFailed: {shown['said']}"
        else:
            continue
        failure = Failure(
            "a program", "", f"{HEADER}\n{raised}", seen=Seen.LOGGED, note="somebody's words tell of an error of the compiler's"
        )
        if is_compiled(sign(failure), failure):
            yield failure
            return
