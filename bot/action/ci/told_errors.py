"""Errors of the compiler of which somebody tells in words: a title, a sentence, a comment of a program; in a text that shows none whole."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import accumulate, pairwise

from bot.action.ci.compiles import CHECKED, OVERWRITTEN, STRIDES, TRACERS
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.judge import is_compiled, sign, told_fault
from bot.action.ci.lines import title
from bot.action.ci.python_words import HEADER
from bot.action.ci.tracebacks import NAMED

MAX_LINE = 2_000

FAILS = re.compile(
    r"\b(?:errors?|exceptions?|fail(?:s|ed|ing|ures?)?|rais(?:es|ed)|crash(?:es|ed|ing)?|thr(?:ows?|own|ew|owing)"
    r"|seg(?:mentation )?[ -]?fault(?:s|ed|ing)?)\b",
    re.IGNORECASE,
)
# How it is said that compiling fails, with more than an error.
_FAILING = re.compile(
    rf"{FAILS.pattern}|\berrs\b|\b(?:can't|cannot|could(?:n't| not)|unable to)\b|\b(?:does|do|did)(?:n't| not) (?:seem to |appear to )?work"
    r"|\bnot working\b|\bincompatib|\b(?:assert|abort|break)s\b|\bbroken\b",
    re.IGNORECASE,
)
# What somebody compiles with, in words, no path, and what tells of eager, too, or that something may happen. Another Dynamo is a server.
COMPILING = re.compile(
    r"\b(?i:(?:py)?torch(?: ?2(?:\.\d{1,2}){0,2})?[._ -]compil(?!er\.))|\b[Cc]ompiled[ _](?:autograd|graph)\b"
    r"|\b[Tt]orch export\b|\btorch\.(?:export\b|_(?:inductor|export)\.(?:aot|compil|export))"
    r"|(?<![\w/])(?:[Tt]orch[_ ]?[Dd]ynamo|dynamo|PT2|(?:[Tt]orch_?)?[Ii]nductor|AOTI|(?i:aot[_ ]?inductor)(?:_package)?)\b"
    r"|\b(?:with|using) compile(?! (?:flag|option|command|time)|[\w=(.-])|\bin compiled? mode\b"
    r"|\b[Ee]ager(?: ?/ ?| (?:vs\.?|versus|and) )[Cc]ompiled?\b|\b[Cc]ompiled?(?: ?/ ?| (?:vs\.?|versus|and) )[Ee]ager\b"
    r"|\b(?i:during|when|while|after) (?:I )?compil(?:e|ing|ation)\b"
)
# Words that mean any compiler, and Dynamo, which may be a server: they mean this one in a text that names it elsewhere.
_NAMES = re.compile(
    r"\btorch[./](?:_dynamo|export|compile)\b|(?<![a-z])(?:torch_?)?inductor\b|--[\w.-]{0,40}(?<=[.-])compile\b|\bfullgraph=True\b"
    r"|\bflex_attention\b",
    re.IGNORECASE,
)
_IN_CONTEXT = re.compile(
    rf"{COMPILING.pattern}|(?<![\w.-])(?i:compil(?:ed?|es|ing|ation)|dynamo)\b(?! (?:with|against|for|from|flags?|options?|time)\b|[\w=.-])"
)
_EAGER = re.compile(
    r"\beager(?!(?: ?/ ?| (?:vs\.?|versus|and) )compil)|\bwithout\b(?=.{0,40}(?:compil|inductor|dynamo|export|\bit\b|\bthis\b))"
    r"|(?<![\w/-])(?:disabl\w{1,4}|turn\w{0,3} off|may|might|if|should|would|sometimes)\b"
    # what is past, and what does not happen; what a compiler of C++ builds
    r"|\b(?:unrelated|previous(?:ly)?|used to|no (?:\w+ )?(?:errors?|fail\w*|crash\w*|exceptions?|more))\b"
    r"|\b(?:nvcc|cmake|setup\.py|wheels?|from source|extensions?)\b|(?:\bnot|n['\u2019]t|\bnever) (?:fail|crash|err|rais|throw)",
    re.IGNORECASE,
)
# What compiles; and the class that triton raises for any kernel.
COMPILED = re.compile(r"\btorch\.compile\b|\b(?:Torch)?[Ii]nductor\b")
_OF_TRITON = "CompilationError"
WENT_ON = re.compile(
    r"\b(?:fall(?:s|ing)?|fell) back\b|\bgraph[- ]breaks?\b|\bno longer\b|\b(?:fix|resolve?|mend)(?:e?s|e?d|ing)?\b", re.IGNORECASE
)
_WAS_NOT = re.compile(r"n't\b|\b(?:not|never|without|should|must|expect(?:s|ed)?|would|could|instead|catch(?:es)?|caught)\b", re.IGNORECASE)
# A change, a line of a program, and of a log.
_NO_WORDS = re.compile(
    r" {2}|.{0,200}\b(?:[WIVDE]\d{4} \d\d:|WARNING|INFO|DEBUG|Warning:)\b|(?:import|from|def|@|[+-]\s)|[\w.]{1,60}(?: ?=|\()|E  |>  "
)
# What is said by the way, in a sentence. Sentences, and parts of one that tell of two things.
_ASIDE = re.compile(r" \([^()\n]{1,300} [^()\n]{1,300}\)")
_ENDS = re.compile(r"(?<=[.!?]) ")
_SENTENCES = re.compile(r"(?<=[.!?;]) | but |, (?:while|whereas) ")

# A class of the compiler's, or any whose message is the compiler's; with its message.
_OWN = rf"(?:{NAMED}|[A-Z]\w{{0,60}}(?:Error|Exception)(?=: (?:Error: )?(?:{CHECKED}{TRACERS}|{OVERWRITTEN}|{STRIDES})))"
_SAID = rf"(?P<said>{_OWN}: [^\s`][^\n`]{{0,1000}})"
# In ticks; and as the end of a line, in a sentence, behind a colon which is none of an error's, or behind what says that it is an error.
_TICKED = re.compile(rf"` {{0,2}}{_SAID}`")
_BEHIND = re.compile(
    r"(?:^|[.!?] )(?:[^`\n]{1,200}(?<!Error)(?<!Exception)(?<!Failed)(?<!Unsupported): "
    r"|(?:[^`\n]{0,200}\W)?(?i:(?:this |the |an? )?(?:errors?|exception)|with) )"
    rf"(?:{NAMED} )?{_SAID}$"
)
# What it says of a backend, with the class that that raised, in the same line, as a user interface shows it.
_BACKEND = re.compile(r"(?:^|[^`\w])(?P<said>backend='[^'\n]{1,100}' raised: [A-Z]\w{1,60}(?:Error|Exception): \S[^\n]{0,1000})")
# In a comment of a program, which is fenced; its message goes on in the comments below.
_COMMENT = re.compile(r" {0,40}# ?")
_BEGINS = re.compile(rf"{NAMED}: \S")
FENCE = "```"
# A class of the compiler's, without its message, of which a sentence or a title says that it was raised; not that it should be, or is not.
_RAISED = re.compile(
    r"\b(?:(?:fail|crash|die|end|error)(?:e?s|e?d|ing)?(?: out| up)? with|rais(?:es|ed)|throws?|thrown|threw|g[eo]t|hits?|encounter(?:s|ed)"
    rf"|see|saw|reports?) (?:(?:an?|the|this|following) ){{0,2}}[`*]{{0,2}}(?P<named>{NAMED})\b"
    rf"|\b(?P<told>{NAMED})[`*]{{0,2}}(?: (?:error|exception))? (?:is|was|gets|has been) (?:reported|raised|thrown|shown)\b"
)
# A title that names one of the compiler's, and goes on with the message; or with when it was raised, where it begins with the class,
# behind labels, or words tell of an error before it. The compiler's own words may deny something, but do not ask for it.
_LABELS = r"# (?:\[[^\]\n]{1,60}\]:? {0,2}){0,4}"
_TITLED = re.compile(
    rf"{_LABELS}(?P<before>[^\n]{{0,150}}?)(?<![\w.])(?P<named>{_OWN})\b['\"\u201d>`*]{{0,3}}"
    r"(?:(?P<said>: {0,2}\S)| (?:with|when|while|in|on|for|during|after|at|using)\b| {0,2}(?:`|$))"
)
# One that begins with the compiler's message, without its class; and one that names any class, with its message or when it was raised.
_MESSAGE = re.compile(rf"{_LABELS}(?P<said>{TRACERS}[^\n]{{0,1000}})")
_OTHER = re.compile(
    rf"{_LABELS}(?P<before>(?:[^\n]{{0,150}}?[^\w.\n])?)(?P<said>[A-Z]\w{{1,60}}(?:Error|Exception)(?:(?:: \S|\([\"'])[^\n`]{{0,1000}}"
    r"|(?=`?(?: (?:in|on|at|when|while|with|during|after|due)\b|$))))"
)
# Not of the compiler: what is not there; and what happens without it.
_OF_OTHERS = re.compile(
    r"Error: (?:cannot import name |No module named |module '|Error compiling objects for extension"
    r"|[^\n]{0,200}\bhas no attribute '_?(?:compile|dynamo|inductor)')|\b(?:without|eager)\b"
)
_ASKED = re.compile(r"\bshould\b", re.IGNORECASE)
# One that says what is to be done does not say what happened.
TO_DO = re.compile(
    rf"{_LABELS}(?:\w{{1,30}}(?:\(\S{{1,30}}\))?: )?(?:add|allow|avoid|catch|check|clarify|disable|doc(?:ument)?s?|enable|ensure|explain"
    r"|handle|hide|implement|improve|introduce|make|move|prevent|print|re-?enable|remove|rename|replace|report|rewrite|show|skip|support"
    r"|suppress|tests?|turn|update|use|work ?around|wrap|xfail)(?:s|e?d|ing)?\b",
    re.IGNORECASE,
)
# Any error, alone on its line, or in ticks in a sentence.
_ERROR = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,9}[A-Z]\w{0,60}(?:Error|Exception): \S")
_ANY_TICKED = re.compile(rf"` {{0,2}}(?P<said>{_ERROR.pattern}[^\n`]{{0,1000}})`")
_TO_GO = r"(?! to (?!compile|export|trace|run|load|lower|generate)\w)"
# What happened, by itself: not what is said of errors, or in a list, not what is asked, and not that it is slow, or fails to be fast.
_HAPPENS = re.compile(
    rf"^(?!\* |.*\?$).*?\b(?:fail(?:s|ed|ing|ures?)?{_TO_GO}|crash(?:es|ed|ing)?|rais(?:es|ed)|thr(?:ows|own|ew)"
    r"|seg(?:mentation )?[ -]?fault(?:s|ed|ing)?|(?:get|got|getting|see|saw|seeing) (?:an|this|the following) error message"
    r"|(?:errors?|exceptions?)(?! (?:messages?|handl\w{1,4}|types?|codes?|class(?:es)?|reports?|paths?|logs?)\b))\b",
    re.IGNORECASE,
)
# How a title says what fails, as it is: not what should be done about it, nor when something else is.
_FAILURE = r"(?:errors?|exceptions?|failures?|mismatch|crash|seg(?:mentation )?[ -]?fault)"
_HEADLINE = re.compile(
    rf"\b(?:fail(?:s|ed|ing){_TO_GO}|(?:crash|segfault)(?:e?s|ed|ing)|raise[sd]|thr(?:ows|own|ew)|err(?:s|ors? out)|\w+s (?:fail|crash))\b"
    rf"|\b(?:causes?|triggers?|leads? to|gives?|g[eo]ts?|reports?|seems? to) (?:an? |the )?(?:\w+ (?:to )?)?(?:fail|{_FAILURE})\b"
    r"|\b(?:can't|cannot|unable to) (?:be )?(?:us|compil|export|trac|run|load|lower|generat)\w{0,4}\b|\b(?:does|do)(?:n't| not) work\b"
    rf"|\b(?:{_FAILURE}|fail) (?:when|while|at|with|after|during|caused|(?:in )?using)\b"
    r"|\b(?:crash|seg(?:mentation )?[ -]?fault|fail) (?:in|on)\b"
    rf"|\b(?:compile|dynamo|inductor|export) (?!\w+s$){_FAILURE}$",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"\b(?:when|where|whether|why|how|what|which|that|does|is)\b|\?$", re.IGNORECASE)
# A sentence that goes on in a list.
_LISTS = re.compile(r":\n+(?:\d[.)]|[-*]) (?=\S)")
# What parts a report of a failure; and what somebody says of what they met.
_REPORT = re.compile(r"#{1,6} .{0,40}\b(?:bug|what happened|error (?:logs?|messages?)|current behaviou?r)\b", re.IGNORECASE)
_MET = re.compile(
    r"\b(?:I|[Ww]e)\b.{0,150}?\b(?:g[eo]t|getting|see|saw|seeing|hit|hitting|encounter(?:ed|ing)?|ran into|found that)\b"
    r"|\bg[ai]ve?s? (?:me|us) "
    r"|^[Gg]etting |\breproduced the (?:bug|issue|problem)\b|\bfails with (?:this|the|an|the following) error\b"
)
_TRIED = re.compile(r"\btr(?:y|ied|ying)\b", re.IGNORECASE)
_FOLLOWS = re.compile(r"\bfollowing error\b|\bthis error\b|\berrors? (?:below|as follows)\b", re.IGNORECASE)
# How it is said that results are others: that they differ, that they are results, from whose or how they come.
_OTHER_RESULTS = (
    re.compile(
        r"\b(?:differ\w{0,6}|mismatch\w{0,3}|discrepanc\w{1,3}|diverge\w{0,3}|inconsistent|wrong|incorrect|nans?|all[- ]zeros?)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:outputs?|results?|values?|answers?|numbers?|grad(?:ient)?s?|loss|precision|accuracy|numeric\w{0,4}|(?<=wrong )code)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\beager|\boutputs? (?=differ|incorrect|wrong|inconsist)"
        r"|\b(?:produces?|gives?|returns?|yields?|computes?|generates?|makes?|becomes?|g[eo]t|leads? to|silent(?:ly)?)\b",
        re.IGNORECASE,
    ),
)
# What is asked, or tested; and that it is eager whose results are wrong.
_QUESTIONED = re.compile(
    r"\?$|\beager\b[^,.;]{0,60}\b(?:wrong|incorrect|nans?)\b|\b(?:should|may|might|raises?|warns?|asserts?|checks?|detects?|compares?|verif(?:y|ies)|logs?)\b",
    re.IGNORECASE,
)
# Where torch.testing, NumPy's or a program's own assertion compares; and what it says.
_COMPARED = re.compile(
    r"(?:^|\n)AssertionError:\s{1,3}(?:(?:Tensor-likes|Scalars) are not (?:close|equal)!|Not equal to tolerance )"
    r"|\n {4}(?:raise error_metas\[0\]\.to_error\(|assert [^\n]{0,300}close\()[^\n]{0,300}\n(?: {4}[ ~^]{1,300}\n)?AssertionError\b"
)
_COMPILES = re.compile(r"(?:.{0,500}[^\w`])?torch\.compile\(|@torch\.compile\b")
_OWN_KERNEL = "@triton."
# What Markdown and quotation marks put around words.
_MARKS = " `*'\"\u201d"
_UNSHOWN = "the text tells of an error, and the log does not show all of it"
TOLD = "the text tells that compiling fails"
_DIFFERS = "the text tells that a compiled program gives other results"
COMPARES = "a program that compiles ends where it compares: whether the compiler makes the difference shows only when it runs"


def _failure(raised: str, note: str = _UNSHOWN) -> Failure:
    return Failure("a program", "", raised and f"{HEADER}\n{raised}", seen=Seen.LOGGED, note=note)


def _is_own(failure: Failure, lines: list[str]) -> bool:
    """Whether the compiler raised the `failure` that such `lines` tell of; triton raises its class for any kernel."""
    of_triton = failure.text.removeprefix(f"{HEADER}\n").partition(":")[0].endswith(_OF_TRITON)
    return is_compiled(sign(failure), failure) and (not of_triton or any(map(COMPILED.search, lines)))


def of_cut(lines: list[str], *, compiled: bool = False) -> Iterator[Failure]:
    """What such `lines` tell of a failure whose traceback they show, cut off; within what is `compiled`, as far as it goes, or not."""
    yield from titled(lines, compiled=compiled)
    yield from sentences(lines, cut=True)


def sentences(lines: list[str], *, cut: bool = False) -> Iterator[Failure]:
    """The failure of the compiler of which the last of such `lines` tells; by a class alone, too, where its traceback is `cut` off."""
    comments: list[str] = []
    fences = lines.count(FENCE)
    for line in reversed(lines):
        said = line[:MAX_LINE]
        fences -= line == FENCE
        comment = _COMMENT.match(said) if fences % 2 else None
        comments = [said[comment.end() :], *comments] if comment else []
        raised = "\n".join(comments) if comments and _BEGINS.match(comments[0]) else _raised(said, cut)
        if raised and _is_own(failure := _failure(raised), lines):
            yield failure
            return


def _raised(line: str, cut: bool) -> str:
    """What a `line` of words says that the compiler raised; empty where it says nothing of the kind, or that it went on."""
    if line.startswith("#") or _NO_WORDS.match(line):
        return ""
    found = _TICKED.search(line) or (None if WENT_ON.search(line) else _BEHIND.search(line))
    words = line.replace(found["said"], " ") if found else line
    named = _RAISED.search(line) if not _WAS_NOT.search(words) else None
    if WENT_ON.search(words):
        return ""
    if found:
        return found["said"] if named or FAILS.search(words) else ""
    if shown := _BACKEND.search(line):
        return f"BackendCompilerFailed: {shown['said']}"
    return named["named"] or named["told"] if named and cut else ""


def titled(lines: list[str], *, compiled: bool = False) -> Iterator[Failure]:
    """The failure of which the title of such `lines` tells; where what is shown of it is `compiled`, any with which the title begins."""
    head = title(lines)[:MAX_LINE]
    if TO_DO.match(head) or told_fault(head):
        return
    own = None if _ASKED.search(head) or WENT_ON.search(head) else _TITLED.match(head)
    if own and not _WAS_NOT.search(own["before"]) and (own["said"] or not own["before"].strip("`*") or FAILS.search(own["before"])):
        failure = _failure(f"{own['named']}: {head[own.start('said') + 1 :].strip(_MARKS)}" if own["said"] else own["named"])
        if _is_own(failure, lines):
            yield failure
            return
    said = _MESSAGE.match(head) or (None if _OF_OTHERS.search(head) else _OTHER.match(head))
    words = head[: said.start("said")] if said else ""
    beside = COMPILING.search(head) or (said and (said.re is _MESSAGE or (compiled and not said["before"].strip("`"))))
    if said and beside and not any(each.search(words) for each in (WENT_ON, _ASKED, _EAGER)):
        yield _failure(said["said"])


def alone(lines: list[str]) -> Iterator[Failure]:
    """The only error in such `lines` of somebody's text, of any class, which shows no traceback and says that compiling fails; the one in
    ticks in a sentence that says so; or that of a program that compiles, and compares.
    """
    if _changes(title(lines)):
        return
    ticked = [(line, told["said"]) for line in lines if "Error: " in line and (told := _ANY_TICKED.search(line[:MAX_LINE]))]
    shown = {line for line in lines if _ERROR.match(line[:MAX_LINE])}
    # a program may have what it raised in a comment
    shown = shown or {
        said for line, fenced in _fenced(lines) if fenced and _ERROR.match(said := _COMMENT.sub("", line[:MAX_LINE], count=1))
    }
    note = COMPARES if compares(lines, shown) else TOLD if says(_words(lines)) else _DIFFERS if _tells_of_others(lines) else ""
    if note:
        found = shown or {said for _, said in ticked}
    else:
        compiling = _compiling(lines)
        found = {said for line, said in ticked if _says(line.replace(said, ""), compiling)}
    if len(found) == 1 and not _OF_OTHERS.search(error := found.pop()):
        yield _failure(error, note or TOLD)


def unshown(lines: list[str]) -> Iterator[Failure]:
    """The failure of which the words in such `lines` say that compiling fails, and nothing more: there is no error in them.

    A change says so of what it mends, a comment of what others did, documentation of what may happen: what counts is a title, a report's
    words, and what somebody met.
    """
    head = title(lines)
    if _changes(head) or any(_ERROR.search(line[:MAX_LINE]) for line in lines):
        return
    words, compiling = _words(lines), _compiling(lines)
    reports = any(map(_REPORT.match, words))
    follows = _says(head, compiling) and any(map(_FOLLOWS.search, words))
    happens = (line for line in words if line != head and (reports or _MET.search(line)))
    heads = (line.lstrip("#") for line in words if line.startswith("#") and line.lstrip("#").startswith(" "))
    if follows or any(_entitles(each, compiling) for each in heads) or any(_says(line, compiling, _HAPPENS) for line in happens):
        yield _failure("", f"{TOLD}, and shows no error")
    elif _tells_of_others(lines):
        yield _failure("", _DIFFERS)


def _fenced(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Each of such `lines`, and whether it is in a fence."""
    fences = accumulate(line == FENCE for line in lines)
    return ((line, bool(fence % 2)) for line, fence in zip(lines, fences, strict=True))


def _words(lines: list[str]) -> list[str]:
    """Those of such `lines` that are somebody's words: what is fenced is a program, or a log; a sentence may go on in a list."""
    words = [line for line, fenced in _fenced(lines) if not fenced and line != FENCE]
    return [line.removeprefix("- ") for line in _LISTS.sub(": ", "\n".join(words)).split("\n")]


def compiles(lines: list[str]) -> bool:
    """Whether such `lines` show a program that compiles, and has no kernel of its own."""
    return any(map(_COMPILES.match, lines)) and not any(line.lstrip().startswith(_OWN_KERNEL) for line in lines)


def compares(lines: list[str], shown: Collection[str]) -> bool:
    """Whether the text of such `lines` has a program that compiles, and each error or traceback that is `shown` is of a comparison."""
    return bool(shown) and all(map(_COMPARED.search, shown)) and compiles(lines) and not _changes(title(lines))


def _differs(line: str, compiling: re.Pattern[str]) -> bool:
    """Whether a sentence in a `line` of words says that a program, by `compiling`, gives other results than it gives in eager."""
    told = (said for said in _ENDS.split(line[:MAX_LINE]) if not (_QUESTIONED.search(said) or WENT_ON.search(said)))
    return any(all(each.search(said) for each in (compiling, *_OTHER_RESULTS)) for said in told)


def _tells_of_others(lines: list[str]) -> bool:
    """Whether the title of such `lines`, a report's words, or what somebody met say that a compiled program gives other results."""
    head, words, compiling = title(lines), _words(lines), _compiling(lines)
    reports = any(map(_REPORT.match, words))
    return any(_differs(line, compiling) for line in words if reports or line == head or _MET.search(line))


def _changes(head: str) -> bool:
    """Whether a title `head` is that of a change: what it tells of is what that mends, or leaves out."""
    return bool(TO_DO.match(head) or WENT_ON.search(head))


def _entitles(head: str, compiling: re.Pattern[str]) -> bool:
    """Whether a title `head` says that `compiling` fails."""
    said = _ASIDE.sub("", head[:MAX_LINE])
    found = _HEADLINE.search(said)
    return found is not None and not _BESIDE.search(said[: found.start()]) and not head.endswith("?") and _says(head, compiling, _HEADLINE)


def _compiling(lines: list[str]) -> re.Pattern[str]:
    """What such `lines` compile with, as their words say it."""
    return _IN_CONTEXT if any(_NAMES.search(line[:MAX_LINE]) for line in lines) else COMPILING


def says(lines: list[str]) -> bool:
    """Whether any of such `lines` says that compiling fails."""
    compiling = _compiling(lines)
    return any(_says(line, COMPILING) for line in lines) or any(_says(line, compiling) for line in _words(lines))


def _says(line: str, compiling: re.Pattern[str], how: re.Pattern[str] = _FAILING) -> bool:
    """Whether a `line` of words says that `compiling` fails, as `how` finds it, and not that eager does, or that it went on."""
    words = line[:MAX_LINE]
    parts = _SENTENCES.split(_ASIDE.sub("", words))
    # what somebody tried, and what came of it
    parts += [f"{tried} {met}" for tried, met in pairwise(parts) if _TRIED.search(tried) and _MET.search(met)]
    fails = any(compiling.search(said) and how.search(said) and not _EAGER.search(said) for said in parts)
    return fails and not (_NO_WORDS.match(words) or WENT_ON.search(words))
