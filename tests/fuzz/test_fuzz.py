"""What comes from outside, in any form: nothing here ends with an exception, does harm on a page, or says of two bugs that they are one.

A hundred inputs of each in a run of the tests; as many as wanted by `scripts/fuzz`.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.action import redaction
from bot.action.console import InputError
from bot.action.gate import ci_event, code_blocks, gate, groups, junit, logs
from bot.action.gate.ci_failures import fault, sign
from bot.action.gate.command import CommandSyntaxError, commands
from bot.action.gate.requests import rows
from bot.action.github.resources import IssueComment
from bot.action.report import excerpt, result_dir
from bot.action.report.render import notes
from bot.action.report.render.rendering import COMMENT_LIMIT, annotations_of, render
from bot.action.report.render.text import size
from bot.failure.messages import essence, normalize
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.models.failure import Signature
from bot.models.report import Report
from bot.models.request import Cause, Request
from tests.action import canaries
from tests.action.gate import memory
from tests.action.report import github_page, reports
from tests.fuzz.mutations import ATOMS, FIXTURES, changed

INPUTS = int(os.environ.get("TORCH_MINIFY_FUZZ", "100"))
# Long runs look for what fails, not for its smallest form: that costs most of their time.
LONG = {} if INPUTS <= 1000 else {"phases": (Phase.generate,), "database": None}
fuzzed = settings(max_examples=INPUTS, deadline=None, suppress_health_check=list(HealthCheck), **LONG)

LOGS = [path.read_bytes().decode("utf-8", "replace") for path in sorted((FIXTURES / "ci" / "logs").iterdir())]
LOGS.append((FIXTURES / "ci" / "run-test.txt").read_text(encoding="utf-8"))
XML = [path.read_text(encoding="utf-8") for path in sorted((FIXTURES / "ci" / "junit").iterdir())]
# Two cases each: a whole file is too long to be torn at an interesting place.
CASES = [f"<testsuite>{case}</testsuite>" for text in XML for case in re.findall(r"<testcase.*?</testcase>", text, re.DOTALL)[:6]]
RESULTS = [path.read_text(encoding="utf-8") for path in sorted((FIXTURES / "results").glob("*/result.json"))]
TRACEBACKS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((FIXTURES / "tracebacks").iterdir())}
COMMENTS = [
    "/minify --budget 10m --test 'tests/a.py::b[x y]'\n\n```python\nimport torch\ntorch.compile(f)(x)\n```\n",
    "text\n/minify again\n",
    "> /minify\n\n- /minify\n<div>\n/minify\n\n/minify stop\n</div>\n",
    "/minify https://github.com/octo/models/actions/runs/20/job/200 --stage aot\n/minify help\n",
    "# h\n/minify –-accuracy “on” --device cuda --torch-version 2.13.0\n",
]
LINKS = "https://github.com/"


def page(body: str) -> None:
    """As it would be posted."""
    body = f"{reports.MARKER}\n{body}"
    assert size(body) <= COMMENT_LIMIT
    github_page.check(body, reports.MARKER, links=LINKS)


# --- what people write


@fuzzed
@given(changed(COMMENTS))
def test_commands(body: str) -> None:
    """The grammar, and the finder of code."""
    try:
        commands(body)
    except CommandSyntaxError as error:
        page(notes.problem(str(error), "help"))
    code_blocks.find(body)
    code_blocks.find(body, torch_only=True)


@fuzzed
@given(
    changed(COMMENTS, 4), changed([memory.BLOCK, "It fails:\n```\nlog\n```\n" + memory.BLOCK], 4), st.booleans(), st.booleans(), st.data()
)
def test_events_about_comments(body: str, issue: str, pull: bool, writer: bool, data: st.DataObject) -> None:
    event = json.loads(memory.asked(body, issue_body=issue, pull=pull).model_dump_json())
    _spoil(event, data)
    _decided("issue_comment", event, writer)


@fuzzed
@given(st.sampled_from(["pytest-short", "unittest", "crash"]), st.data())
def test_events_about_runs(log: str, data: st.DataObject) -> None:
    event = json.loads(memory.finished(_hub(log).runs[20]).model_dump_json())
    _spoil(event, data)
    _decided("workflow_run", event, True, log)


def _hub(log: str = "unittest") -> memory.Memory:
    api = memory.Memory()
    api.add_pull()
    api.add_run(20, log)
    api.logs[200] = api.logs[200][:20_000]
    return api


def _spoil(event: Any, data: st.DataObject) -> None:
    """Put something else into some places of an event."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key, value in list(node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()):
            places.append((node, key))
            walk(value)

    walk(event)
    odd = st.sampled_from([None, -1, 0, True, [], {}, 10**30, "", "\ud800", {"x": []}, *ATOMS])
    for _ in range(data.draw(st.integers(0, 3))):
        node, key = data.draw(st.sampled_from(places))
        if isinstance(node, dict) and data.draw(st.booleans()):
            node.pop(key, None)
        elif isinstance(node, dict) or key < len(node):
            node[key] = data.draw(odd)


def _decided(name: str, event: Any, writer: bool, log: str = "unittest") -> None:
    """Run the gate on an event: it ends well or says that the event is none, and what it writes does no harm."""
    api = _hub(log)
    if not writer:
        api.permissions = {}
    with tempfile.TemporaryDirectory() as where:
        path, file = Path(where) / "event.json", Path(where) / "request.json"
        path.write_text(json.dumps(event), encoding="utf-8")
        try:
            read = gate.read_event(path, name)
        except InputError:
            return
        outcome = gate.run(read, memory.settings(), api, file)
        # 1 would be a fault of ours, or of GitHub, which makes none here but for pull requests that it does not know
        assert outcome.exit_status in (0, 6, 7), outcome
        if file.exists():
            assert all(Request.model_validate(one) for one in json.loads(file.read_text(encoding="utf-8")))
    for comments in api.written.values():
        for comment in comments:
            first, _, rest = comment.body.partition("\n")
            assert first.startswith("<!-- torch-minify:")
            page(rest)


# --- what CI printed


@fuzzed
@given(changed(LOGS))
def test_logs(text: str) -> None:
    _grouped(logs.failures(text, "job"))


@fuzzed
@given(changed(CASES) | changed(XML))
def test_junit(text: str) -> None:
    _grouped(junit.failures(text.encode("utf-8", "replace")))


def _grouped(found: tuple[Any, ...]) -> None:
    base = groups.BaseRun.of("main", found[:1], sign)
    for against in (None, base):
        grouped = groups.group(found, against, sign, fault)
        table = notes.candidates(rows(grouped, groups.chosen(grouped, 5, asked=True)))
        assert size(table) <= notes.MOST_BYTES + 200
        page(table)
        for each in grouped:
            page(notes.opened("o/r", each.first.name, "https://github.com/o/r/actions/runs/1"))
            title = notes.title_of_issue(each.signature.line() if each.signature else each.first.name)
            assert len(title) <= notes.MOST_TITLE
            assert "\n" not in title
    assert ci_event.RedRun


# --- what a machine left


@fuzzed
@given(reports.reports, st.sampled_from([COMMENT_LIMIT, COMMENT_LIMIT, 3_000, 20_000]))
def test_rendering(report: Report, limit: int) -> None:
    body = render(report, limit)
    assert size(body) <= limit
    github_page.check(body, reports.MARKER)
    for each in annotations_of(report):
        assert len(each.command().splitlines()) == 1


@fuzzed
@given(st.lists(reports.requests, min_size=1, max_size=4), reports.texts, reports.long_texts)
def test_notes(asked: list[Request], words: str, long: str) -> None:
    cause = Cause(verdict=words, reason=words, failure=long, tests=(words, long), taken=True)
    tables = [notes.candidates([cause] * 30)] * 3
    url = "https://github.com/owner/name/actions/runs/1"
    page("\n\n".join([notes.queued(asked, words[:100], url), *tables]))
    page("\n\n".join([notes.refused(long), *tables]))
    page(notes.problem(long, long))
    page(notes.running(asked, 0, long, words))
    page(notes.ended(words, url))
    page(notes.done([words], url) if not words else notes.done(["Minimized"], words))


@fuzzed
@given(st.sampled_from(RESULTS), changed(list(TRACEBACKS.values()), 3), reports.texts, st.data())
def test_results(text: str, log: str, repro: str, data: st.DataObject) -> None:
    """Whatever the files of a result hold, the report of it can be posted."""
    if data.draw(st.booleans()):
        result = json.loads(text)
        _spoil(result, data)
        text = json.dumps(result)
    else:
        text = data.draw(changed([text]))
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where) / "result-0"
        (folder / "original").mkdir(parents=True)
        for name, content in (("result.json", text), ("repro.py", repro), ("original/log.txt", log), ("exported_program.txt", repro)):
            (folder / name).write_bytes(content.encode("utf-8", "surrogatepass"))
        (folder / "exported_program.pt2").write_bytes(data.draw(st.binary(max_size=40)))
        section = result_dir.section(reports.request(), result_dir.Folder(folder))
        assert (section.result is None) == (section.problem is not None)
        body = render(reports.report(section))
        assert size(body) <= COMMENT_LIMIT
        github_page.check(body, reports.MARKER)


# --- signatures

NOISE: list[Callable[[str, int], str]] = [
    lambda text, by: re.sub(r"0x[0-9a-f]{6,}", f"0x7f{by:010x}", text),
    lambda text, by: re.sub(r", line \d+,", f", line {by + 2},", text),
    lambda text, by: text.replace("site-packages/", f"/home/u{by}/venv/lib/python3.12/site-packages/"),
    lambda text, by: f"[{by}] loading\nwarning: {by} things\n" + text,
    lambda text, by: text.replace("\n", "\r\n"),
    lambda text, by: text + "\n" * (by % 5),
    lambda text, by: f"\x1b[{by % 8 + 30}mwarning\x1b[0m\n{text}",
]


def signed(name: str, text: str) -> Signature:
    status = "timeout" if name.startswith("hang") else "signal" if "Fatal Python error" in text else "raised"
    found = signature_of(Outcome(status=status, text=text, signal="SIGSEGV" if status == "signal" else None))
    assert found is not None
    return found


RECORDED = {name: signed(name, text) for name, text in TRACEBACKS.items()}
# Recordings of one failure: in another form, by another way in, or of programs of ours that say the same words. Numbers that differ are one
# failure by definition, and a crash is told from others by its signal and its phase, then by its frame.
ALIKE = [
    {"147075_diff_n30", "crash_lowering"},
    {"173054_hardswish_bf16", "187018_abs_uint8", "193757_bce_noerror", "script_assert"},
    {"188218_fracmaxpool0", "form_pool_aten"},
    {"190856_jacfwd2_segv", "crash_kernel"},
    {"aoti_188213_scatter", "large_resnet_scatter"},
    {"aoti_cpp_compile_error", "bwd_cpp_compile_error", "cpp_compile_error", "form_relu_aten"},
    {"bwd_runtime_error", "cpp_runtime_error"},
    {"dyn_fake_shape", "dyn_fake_shape_module"},
    {"form_lowering_aoti", "lowering_assert"},
    {"form_pass_aten", "pass_post_grad_custom_post_pass", "pass_post_grad_custom_pre_pass"},
    {"pass_joint_custom_post_pass", "pass_joint_custom_pre_pass"},
    {"run_aot_eager_op", "run_eager_op", "run_kernel_fallback"},
]


def alike(one: str, other: str) -> bool:
    return one == other or any({one, other} <= group for group in ALIKE)


names = st.sampled_from(sorted(TRACEBACKS))


@fuzzed
@given(names, names, st.lists(st.tuples(st.sampled_from(NOISE), st.integers(0, 10**6)), max_size=4))
def test_two_bugs_never_get_one_signature(one: str, other: str, noise: list[tuple[Callable[[str, int], str], int]]) -> None:
    """What says nothing about a failure changes nothing, and two recorded ones stay two."""
    text = TRACEBACKS[one]
    for change, by in noise:
        text = change(text, by)
    found = signed(one, text)
    assert found.fingerprint == RECORDED[one].fingerprint
    assert (found.fingerprint == RECORDED[other].fingerprint) == alike(one, other)


@fuzzed
@given(changed(list(TRACEBACKS.values())), st.sampled_from(["raised", "signal", "timeout", "memory", "exit"]))
def test_signatures_of_any_text(text: str, status: Any) -> None:
    found = signature_of(Outcome(status=status, text=text, signal="SIGSEGV" if status == "signal" else None))
    assert found is not None
    assert Signature.model_validate_json(found.model_dump_json()) == found
    assert found.same(found)
    assert "\n" not in found.line()
    cut = excerpt.traceback(text, found.frame)
    assert excerpt.tail(text) is not None
    assert all(len(line) <= excerpt.LONGEST + 20 for line in cut.split("\n"))


@fuzzed
@given(
    changed([signature.message for signature in RECORDED.values() if signature.message], 4, 400),
    st.sampled_from(["RuntimeError", "Unsupported", ""]),
)
def test_normalization_is_done_at_once(message: str, name: str) -> None:
    once = normalize(message)
    assert normalize(once) == once
    assert isinstance(essence(name, message), str)


# --- secrets


@fuzzed
@given(changed([canaries.ALL, repr(canaries.ALL)], 8, 20_000))
def test_redaction(text: str) -> None:
    once = redaction.redact(text)
    assert redaction.redact(once) == once


@pytest.mark.parametrize("text", RESULTS)
def test_what_is_fuzzed_is_good(text: str) -> None:
    """The seeds are what the parsers take: else every input would be refused at once."""
    from bot.models.result import Result

    try:
        Result.model_validate_json(text)
    except ValidationError as error:
        pytest.fail(str(error))
    assert all(logs.failures(log) for log in LOGS)
    assert all(junit.failures(case.encode()) for case in CASES[:1])
    assert IssueComment.model_validate(json.loads(memory.asked(COMMENTS[0]).model_dump_json()))
