"""One request's part of a comment, as blocks for the layout."""

from __future__ import annotations

from collections.abc import Iterable

from bot.action.report.render import facts, local, verdict
from bot.action.report.render.layout import Block, whole
from bot.action.report.render.markdown import code, fence, fold, fold_within, link, table
from bot.action.report.render.notes import candidates, source
from bot.action.report.render.text import number, one_line, size, span
from bot.models.report import Section, Stored
from bot.models.result import Result

# What gets its room first. Headings are worth more than repros: a repro without a title would claim what it must not.
HEADING, REPRO, FAILURE, SOURCE, EVIDENCE, LOCAL, TRACEBACK, INLINE, EXPORTED, REDUCTION, CAUSES, TESTS, VERSIONS = range(1, 14)

# Maximum characters of a test's name in a title.
_LONGEST_NAME = 120
# Seconds: a larger number in a file is not a time.
_LONGEST_TIME = 1e7
_CHANGED = (
    "In the repro below, a secret or a personal path was replaced. "
    "What was verified is the script before that: as it stands here, it was not run."
)
_MARKED = "From the program as it was given. Frames that only pass calls on are left out; `>` marks the frame that raises."


def blocks(section: Section, index: int, of: int) -> list[Block]:
    """The blocks of `section`, the request with that `index` (from 0) among `of`, in their order."""
    result = section.result
    numbered = f"{index + 1}. " if of > 1 else ""
    changed = f"\n\n{_CHANGED}" if section.repro is not None and section.repro_altered else ""
    made = [whole((HEADING, index), f"### {numbered}{_title(section)}{changed}"), whole((FAILURE, index), _failure(section))]
    if section.repro is not None:
        made.append(_repro(section, index))
    if result is not None:
        made.append(whole((FAILURE, index), facts.figures(result)))
        rows = facts.evidence(result)
        made.append(whole((EVIDENCE, index), table(rows) if rows else ""))
    if section.traceback or section.log:
        made.append(
            _folded(TRACEBACK, index, "Traceback", _MARKED, section.traceback)
            if section.traceback
            else _folded(TRACEBACK, index, "The end of its log", "", section.log or "")
        )
    if result is not None:
        made += [_exported(section, result, index), _inline(section, result, index)]
    if result is not None and result.reduction.queries:
        made.append(whole((REDUCTION, index), fold("How it was reduced", facts.reduction(result))))
    if len(section.request.tests) > 1:
        made.append(
            _folded(TESTS, index, f"{number(len(section.request.tests))} tests fail in this way", "", _lines(section.request.tests))
        )
    if section.request.causes:
        made.append(whole((CAUSES, index), fold("All that failed in that run", candidates(section.request.causes))))
    made.append(whole((LOCAL, index), fold("Do the same on your machine", local.steps(section))))
    if result is not None and result.versions:
        made.append(_folded(VERSIONS, index, "Versions", "", _lines(f"{name} {version}" for name, version in result.versions.items())))
    files = f" {_files(section)}" if section.download else ""
    files += f" Not kept for good, which takes the secret `durable-token`: {code(section.unkept)}." if section.unkept else ""
    altered = " Secrets or personal paths in the texts above were replaced." if section.altered else ""
    made.append(whole((SOURCE, index), source(section.request) + files + altered))
    return made


def _title(section: Section) -> str:
    """The outcome, how long it took, and for which test."""
    result, request = section.result, section.request
    took = f", {span(result.timing.total)}" if result is not None and 0 < result.timing.total < _LONGEST_TIME else ""
    name = request.tests[0] if request.tests else request.command
    of = f": {code(name, _LONGEST_NAME)}" if name else ""
    more = f" and {number(len(request.tests) - 1)} more" if len(request.tests) > 1 else ""
    return f"{verdict.title(section)}{took}{of}{more}"


def _lines(rows: Iterable[str]) -> str:
    return "\n".join(one_line(row) for row in rows)


def _folded(rank: int, index: int, summary: str, head: str, text: str) -> Block:
    return Block((rank, index), lambda room: fold_within(summary, head, text, room))


def _failure(section: Section) -> str:
    """The signature in one line, and why there is no repro."""
    result, said = section.result, []
    if result is not None and result.signature is not None:
        said.append(code(result.signature.line()))
    if section.request.expected is not None:
        said.append(f"CI showed: {code(section.request.expected)}")
    if result is None:
        said.append(
            f"There is no usable result: {code(section.problem)}"
            if section.problem
            else "There is no result. The job may not have started, or it was cancelled, ran out of time, lost its runner, or could not "
            "upload its result. The page of its run says more."
        )
    else:
        said += [facts.why(result), *([f"Not repeated here: {doubt}."] if (doubt := verdict.doubt(section)) else [])]
    return "\n\n".join(part for part in said if part)


def _repro(section: Section, index: int) -> Block:
    """The whole repro; if it does not fit, only its module; if that does not fit either, where to find it."""
    text = section.repro or ""
    full = fence(text, "python")
    note = f"The repro has {number(size(text))} bytes, too many for this comment: it is `repro.py` in {_place(section)}."
    module = module_of(text)
    shorter = f"{note} Its module:\n\n{fence(module, 'python')}" if module else note

    def within(room: int) -> str:
        return next((form for form in (full, shorter, note) if size(form) <= room), "")

    # the smaller ones first, so that most of them are complete
    return Block((REPRO, size(full), index), within)


def module_of(repro: str) -> str | None:
    """The class `Repro` in the script `repro`, found by its lines, since a stranger's text is not parsed."""
    rows = repro.split("\n")
    start = next((number for number, row in enumerate(rows) if row.startswith("class Repro")), None)
    if start is None:
        return None
    end = next((number for number in range(start + 1, len(rows)) if rows[number].strip() and not rows[number][0].isspace()), len(rows))
    return "\n".join(rows[start:end]).rstrip()


def _files(section: Section) -> str:
    """Where all files of the result can be downloaded, in a sentence."""
    until = f", until {code(section.download.expires)}" if section.download and section.download.expires else ""
    return f"All of it is in {_place(section)}{until}. GitHub requires a login."


def _place(section: Section) -> str:
    return link("the run's files", section.download.url if section.download else None)


def _exported(section: Section, result: Result, index: int) -> Block:
    """Where the exported program is, how to load it, and its readable text as far as it fits."""
    stored = next((file for file in section.files if file.name == "exported_program.pt2"), None)
    if stored is None:
        return whole((EXPORTED, index), "")
    head = "\n\n".join([_where(stored, section), *([local.WARNING, fence(local.loading(result), "python")] if not section.program else [])])
    return _folded(EXPORTED, index, "The exported program", head, section.exported_text or "(its text did not come with it)")


def _inline(section: Section, result: Result, index: int) -> Block:
    """The exported program itself: a small one lasts as long as the comment."""
    if section.program is None:
        return whole((INLINE, index), "")
    return whole(
        (INLINE, index),
        fold("The exported program as Python", f"{local.WARNING}\n\n{fence(local.unpacking(section.program, result), 'python')}"),
    )


def _where(stored: Stored, section: Section) -> str:
    expires = section.download.expires if section.download else None
    until = f" until {code(expires)} (GitHub requires a login)" if expires else ""
    kept = f", and {link('for good', stored.kept)}" if stored.kept else ""
    return f"{code(stored.name)}, {number(stored.size)} bytes, sha256 {code(stored.sha256)}, in {_place(section)}{until}{kept}."
