"""Reports to render: small ones by hand, hostile ones from Hypothesis."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.report import Download, Report, Section, Stored
from bot.models.request import Answer, CodeOrigin, Request, RequestOptions
from bot.models.result import Evidence, ExportedProgram, Files, Reduction, Result, Timing, VerificationFacts

MARKER = "<!-- torch-minify:comment-42 run:7 -->"
MENTION = "somebody"
# What would do harm outside of a fence, put between arbitrary text.
HARM = [
    f"@{MENTION}",
    f"@{MENTION}/team",
    "#1",
    "owner/name#2",
    "```",
    "``````",
    "~~~",
    "`",
    # GitHub's parsers know no code spans of more than 80 backticks, and no fences of more than 255
    "`" * 61,
    "`" * 80,
    "\n" + "`" * 255 + "\n",
    "</details>",
    "</pre>",
    "</code>",
    "<![x",
    "<![CDATA[",
    "]]>",
    "<?php",
    "&#64;somebody",
    "&commat;somebody",
    "www.example.org",
    "somebody@example.org",
    "GH-4",
    "0123456789abcdef0123456789abcdef01234567",
    ":smile:",
    "$x$",
    "$$",
    "[^1]",
    "\n[^1]: x",
    "\n| a |\n|---|\n",
    "\n> ",
    "\n- ",
    "\n# ",
    "\n===\n",
    "</td></tr></table>",
    "<!--",
    "<!-- torch-minify: other -->",
    "<!--TORCH-MINIFY: other -->",
    "-->",
    "<img src=x onerror=y>",
    "![](https://example.org/x.png)",
    "[x](javascript:y)",
    "https://github.com/owner/name/issues/1",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    "    ",
    "\x00",
    "\x1b[31m",
    "\u202e",
    "\u2028",
    "\ud800",
    "|",
    "\\",
    "&lt;",
    "::error::x",
    "::stop-commands::x",
    "مرحبا",
    "🙂",
    "{0}",
    "${{ x }}",
    "/minify stop",
    "class Repro:",
]

texts = st.lists(st.sampled_from(HARM) | st.text(max_size=20), max_size=12).map("".join)
long_texts = st.builds(lambda text, times: text * times, texts, st.sampled_from([1, 1, 1, 1, 1, 30, 400]))
maybe = lambda strategy: st.none() | strategy  # noqa: E731
whole_numbers = st.integers() | st.integers(0, 100)
seconds = st.floats()

signatures = st.builds(
    Signature,
    kind=st.sampled_from(Kind),
    phase=st.sampled_from(Phase),
    backward=st.booleans(),
    exception=st.lists(texts, max_size=3).map(tuple),
    message=long_texts,
    frame=maybe(texts),
    signal=maybe(texts),
)
results = st.builds(
    Result,
    status=st.sampled_from(["minimized", "reproduced", "not_reproduced", "flaky", "error"]),
    ended_by=st.sampled_from(["fixed_point", "budget", "interrupted"]),
    stage=maybe(st.sampled_from(Stage)),
    compile_only=st.booleans(),
    machine_fault=maybe(texts),
    reason=maybe(long_texts),
    signature=maybe(signatures),
    reduction=st.builds(
        Reduction,
        ops_before=maybe(whole_numbers),
        ops_after=maybe(whole_numbers),
        lines_before=whole_numbers,
        lines_after=whole_numbers,
        input_elements_before=maybe(whole_numbers),
        input_elements_after=maybe(whole_numbers),
        queries=whole_numbers,
        memo_hits=whole_numbers,
        seconds=seconds,
    ),
    timing=st.builds(Timing, capture=seconds, search=seconds, verification=seconds, evidence=seconds),
    verification=st.builds(
        VerificationFacts, runs=whole_numbers, same=whole_numbers, eager=st.sampled_from(["passes", "fails", "not_applicable"])
    ),
    culprit=maybe(texts),
    sandbox=st.lists(texts, max_size=3).map(tuple),
    versions=st.dictionaries(texts, long_texts, max_size=3),
    evidence=st.builds(
        Evidence,
        passes_if=maybe(long_texts),
        nearness=maybe(long_texts),
        other_failures=st.lists(texts, max_size=20).map(tuple),
        pytorch_dump=st.booleans(),
    ),
    exported_program=maybe(st.builds(ExportedProgram, same_signature=st.booleans(), reason=maybe(texts))),
    files=st.builds(Files, repro=maybe(texts)),
)
requests = st.builds(
    lambda script, **rest: Request(**rest, **({"script": script[0]} if script[1] else {"command": script[0]})),
    script=st.tuples(long_texts, st.booleans()),
    id=texts,
    directory=texts,
    launcher=st.lists(texts, max_size=2).map(tuple),
    repository=texts,
    commit=maybe(texts),
    code=st.builds(
        CodeOrigin,
        where=st.sampled_from(get_args(CodeOrigin.model_fields["where"].annotation)),
        author=texts,
        trusted=st.booleans(),
        url=maybe(texts | st.just("https://github.com/owner/name/issues/1#issuecomment-2")),
        note=maybe(texts),
        folded=st.booleans(),
        linked=st.booleans(),
    ),
    asked_by=texts,
    options=st.builds(RequestOptions, python_version=maybe(texts), torch_version=maybe(texts), budget=maybe(st.floats(min_value=1))),
    answer=st.just(Answer(repository="owner/name", marker=MARKER)),
    expected=maybe(texts),
    tests=st.lists(texts, max_size=30).map(tuple),
)
stored = st.builds(Stored, name=texts | st.just("exported_program.pt2"), size=whole_numbers, sha256=texts, kept=maybe(texts))
sections = st.builds(
    Section,
    request=requests,
    result=maybe(results),
    problem=maybe(texts),
    repro=maybe(long_texts),
    exported_text=maybe(long_texts),
    files=st.lists(stored, max_size=2).map(tuple),
    download=maybe(st.builds(Download, url=texts, expires=maybe(texts))),
    altered=st.booleans(),
    unkept=maybe(texts),
)
reports = st.builds(
    Report,
    marker=st.just(MARKER),
    sections=st.lists(sections, min_size=1, max_size=4).map(tuple),
    run_url=maybe(texts | st.just("https://github.com/owner/name/actions/runs/1")),
)


def request(**changes: Any) -> Request:
    """A plain request by a maintainer, for a script in an issue that a stranger wrote."""
    plain: dict[str, Any] = {
        "id": "c42-0",
        "script": "import torch\n",
        "repository": "owner/name",
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "code": CodeOrigin(where="issue", author="stranger", trusted=False, url="https://github.com/owner/name/issues/7"),
        "asked_by": "maintainer",
        "answer": Answer(repository="owner/name", issue=7, marker=MARKER, comment=43, trigger=42),
    }
    return Request(**{**plain, **changes})


def result(**changes: Any) -> Result:
    """A minimized one."""
    plain: dict[str, Any] = {
        "status": "minimized",
        "stage": Stage.AOT,
        "signature": Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("RuntimeError",), message="no"),
        "reduction": Reduction(ops_before=9, ops_after=1, lines_before=9, lines_after=2, queries=4, seconds=2.0),
        "verification": VerificationFacts(runs=3, same=3, eager="passes"),
        "files": Files(repro="repro.py"),
    }
    return Result(**{**plain, **changes})


def report(*parts: Section) -> Report:
    """With the run it comes from."""
    return Report(marker=MARKER, sections=parts, run_url="https://github.com/owner/name/actions/runs/1")
