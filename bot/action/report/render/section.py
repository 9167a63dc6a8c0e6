"""One request's part of a comment, as blocks that the layout fits in."""

from __future__ import annotations

from collections.abc import Iterable

from bot.action.report.render import facts, local, verdict
from bot.action.report.render.layout import Block, whole
from bot.action.report.render.markdown import code, fence, fold, fold_within, link, table
from bot.action.report.render.text import number, one_line, size
from bot.models.report import Section, Stored
from bot.models.request import Request
from bot.models.result import Result

# What is served first. Headings are worth more than repros: a repro under no title would claim what it may not.
HEADING, REPRO, FAILURE, SOURCE, EVIDENCE, LOCAL, EXPORTED, REDUCTION, TESTS, VERSIONS = range(1, 11)

_WHOSE = {"comment": "the comment", "issue": "the issue", "pull_request": "the pull request", "push": "the branch"}


def blocks(section: Section, index: int, of: int) -> list[Block]:
    """The blocks of `section`, the request with that `index` (from 0) among `of`, in their order."""
    result = section.result
    numbered = f"{index + 1}. " if of > 1 else ""
    made = [whole((HEADING, index), f"### {numbered}{verdict.title(section)}"), whole((FAILURE, index), _failure(section))]
    if section.repro is not None:
        made.append(_repro(section, index))
    if result is not None:
        made.append(whole((FAILURE, index), facts.figures(result)))
        made.append(whole((EVIDENCE, index), table(facts.evidence(result))))
        made.append(_exported(section, result, index))
    if result is not None and result.reduction.queries:
        made.append(whole((REDUCTION, index), fold("How it was reduced", facts.reduction(result))))
    if section.request.tests:
        made.append(
            _folded(TESTS, index, f"{number(len(section.request.tests))} tests fail in this way", "", _lines(section.request.tests))
        )
    made.append(whole((LOCAL, index), fold("Do the same on your machine", local.steps(section))))
    if result is not None and result.versions:
        made.append(_folded(VERSIONS, index, "Versions", "", _lines(f"{name} {version}" for name, version in result.versions.items())))
    files = f" {_files(section)}" if section.download else ""
    altered = " Secrets or personal paths in the texts above were replaced." if section.altered else ""
    made.append(whole((SOURCE, index), source(section.request) + files + altered))
    return made


def _lines(rows: Iterable[str]) -> str:
    return "\n".join(one_line(row) for row in rows)


def _folded(rank: int, index: int, summary: str, head: str, text: str, language: str = "text") -> Block:
    return Block((rank, index), lambda room: fold_within(summary, head, text, room, language))


def _failure(section: Section) -> str:
    """The signature in one line, and why there is no repro."""
    result, said = section.result, []
    if result is not None and result.signature is not None:
        said.append(code(result.signature.line()))
    if section.request.expected is not None:
        said.append(f"CI showed: {code(section.request.expected)}")
    if result is None:
        said.append(
            f"Nothing came back that could be read: {code(section.problem)}"
            if section.problem
            else "Nothing came back: the job was cancelled, ran out of time or lost its runner. Its run page says more."
        )
    else:
        said += [facts.why(result), *([f"Not repeated here: {doubt}."] if (doubt := verdict.doubt(section)) else [])]
    return "\n\n".join(part for part in said if part)


def _repro(section: Section, index: int) -> Block:
    """The repro whole; where it does not fit, its module alone; where that does not either, where to find it."""
    text = section.repro or ""
    full = fence(text, "python")
    note = f"The repro has {number(size(text))} bytes, too many for this comment: it is `repro.py` in {_place(section)}."
    module = module_of(text)
    shorter = f"{note} Its module:\n\n{fence(module, 'python')}" if module else note

    def within(room: int) -> str:
        return next((form for form in (full, shorter, note) if size(form) <= room), "")

    # the smaller ones first: so most of them are whole
    return Block((REPRO, size(full), index), within)


def module_of(repro: str) -> str | None:
    """The class `Repro` in the script `repro`; found by its lines, since a stranger's text is not parsed."""
    rows = repro.split("\n")
    start = next((number for number, row in enumerate(rows) if row.startswith("class Repro")), None)
    if start is None:
        return None
    end = next((number for number in range(start + 1, len(rows)) if rows[number].strip() and not rows[number][0].isspace()), len(rows))
    return "\n".join(rows[start:end]).rstrip()


def _files(section: Section) -> str:
    """Where all that came back can be had, in a sentence."""
    until = f", until {code(section.download.expires)}" if section.download and section.download.expires else ""
    return f"All of it is in {_place(section)}{until}: GitHub asks for a login."


def _place(section: Section) -> str:
    return link("the run's files", section.download.url if section.download else None)


def _exported(section: Section, result: Result, index: int) -> Block:
    """Where the exported program is, how it is loaded, and its readable text as far as it fits."""
    stored = next((file for file in section.files if file.name == "exported_program.pt2"), None)
    if stored is None:
        return whole((EXPORTED, index), "")
    head = "\n\n".join([_where(stored, section), fence(local.loading(result), "python")])
    return _folded(EXPORTED, index, "The exported program", head, section.exported_text or "(its text did not come with it)")


def _where(stored: Stored, section: Section) -> str:
    expires = section.download.expires if section.download else None
    until = f" until {code(expires)} (GitHub asks for a login)" if expires else ""
    kept = f", and {link('for good', stored.kept)}" if stored.kept else ""
    return f"{code(stored.name)}, {number(stored.size)} bytes, sha256 {code(stored.sha256)}, in {_place(section)}{until}{kept}."


def source(request: Request) -> str:
    """Whose code `request` runs, and on whose word."""
    place, asked = link(_WHOSE[request.code.where], request.code.url), f"asked for by {code(request.asked_by)}"
    if request.code.trusted:
        said = [f"Code by {code(request.code.author)} from {place}, {asked}."]
    else:
        said = [f"Code by {code(request.code.author)}, who has no write permission here, from {place}; run because it was {asked}."]
    if request.code.note:
        said.append(f"Taken: {code(request.code.note)}.")
    if request.commit:
        said.append(f"Commit {code(request.commit)} of {code(request.repository)}.")
    return " ".join(said)
