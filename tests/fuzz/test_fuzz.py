"""What comes from outside, in any form: nothing here ends with an exception, does harm on a page, or says of two bugs that they are one.

A hundred inputs of each in a run of the tests; as many as wanted by `scripts/fuzz`.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import ValidationError

from bot.action import redaction
from bot.action.ci import groups, junit, logs
from bot.action.ci.judge import fault, sign
from bot.action.console import InputError
from bot.action.gate import code_blocks, gate
from bot.action.gate.command import CommandSyntaxError, commands
from bot.action.gate.requests import rows
from bot.action.github.resources import IssueComment
from bot.action.report import excerpt, result_dir
from bot.action.report.render import notes
from bot.action.report.render.rendering import COMMENT_LIMIT, annotations_of, render
from bot.action.report.render.text import size
from bot.engine.inputs.take import take
from bot.engine.inputs.taken import NotUnderstood, Place
from bot.failure.messages import essence, normalize
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.models.failure import Signature
from bot.models.request import Request
from tests.action import canaries
from tests.action.gate import memory
from tests.action.report import github_page, reports
from tests.fuzz.mutations import FIXTURES, Dice, dice

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
@given(dice)
def test_commands(roll: Dice) -> None:
    """The grammar, and the finder of code."""
    body = roll.changed(COMMENTS)
    try:
        commands(body)
    except CommandSyntaxError as error:
        page(notes.problem(str(error), "help"))
    code_blocks.find(body)
    code_blocks.find(body, torch_only=True)


@fuzzed
@given(dice)
def test_events_about_comments(roll: Dice) -> None:
    issue = roll.changed([memory.BLOCK, "It fails:\n```\nlog\n```\n" + memory.BLOCK], 4)
    asked = memory.asked(roll.changed(COMMENTS, 4), issue_body=issue, pull=roll.random() < 0.5)
    event = json.loads(json.dumps(asked.model_dump(mode="json")))
    roll.spoil(event)
    _decided("issue_comment", event, roll.random() < 0.7)


@fuzzed
@given(dice)
def test_events_about_runs(roll: Dice) -> None:
    log = roll.choice(["pytest-short", "unittest", "crash"])
    event = json.loads(memory.finished(_hub(log).runs[20]).model_dump_json())
    roll.spoil(event)
    _decided("workflow_run", event, True, log)


def _hub(log: str = "unittest") -> memory.Memory:
    api = memory.Memory()
    api.add_pull()
    api.add_run(20, log)
    api.logs[200] = api.logs[200][:6_000]
    return api


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
        # GitHub fails here for pull requests alone that it does not know
        unknown = outcome.summary.startswith("GitHub refused it: `GET: 404`.")
        assert outcome.exit_status in (0, 6, 7) or unknown, outcome
        if file.exists():
            assert all(Request.model_validate(one) for one in json.loads(file.read_text(encoding="utf-8")))
    for comments in api.written.values():
        for comment in comments:
            first, _, rest = comment.body.partition("\n")
            assert first.startswith("<!-- torch-minify:")
            page(rest)


# --- what CI printed


@fuzzed
@given(dice)
def test_logs(roll: Dice) -> None:
    # as the client decodes it
    _grouped(logs.failures(roll.changed(LOGS).encode("utf-8", "surrogatepass").decode("utf-8", "replace"), "job"))


@fuzzed
@given(dice)
def test_junit(roll: Dice) -> None:
    _grouped(junit.failures(roll.changed(CASES, window=100_000).encode("utf-8", "replace")))


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


# --- what a machine left


@fuzzed
@given(dice)
def test_rendering(roll: Dice) -> None:
    report, limit = roll.report(), roll.choice([COMMENT_LIMIT, COMMENT_LIMIT, 3_000, 20_000])
    body = render(report, limit)
    assert size(body) <= limit
    github_page.check(body, reports.MARKER, links=LINKS)
    for each in annotations_of(report):
        assert len(each.command().splitlines()) == 1


@fuzzed
@given(dice)
def test_notes(roll: Dice) -> None:
    asked = [roll.request() for _ in range(roll.randint(1, 4))]
    tables = [notes.candidates([roll.cause() for _ in range(roll.randint(1, 30))]) for _ in range(roll.randint(0, 3))]
    url = roll.choice((None, "https://github.com/owner/name/actions/runs/1", roll.text(2)))
    page("\n\n".join([notes.queued(asked, roll.text()[:100], url), *tables]))
    page("\n\n".join([notes.refused(roll.text(long=True)), *tables]))
    page(notes.problem(roll.text(long=True), roll.text(long=True)))
    page(notes.running(asked, 0, roll.text(long=True), url))
    page(notes.ended(roll.text(), url))
    page(notes.done(["Minimized"] * roll.randint(1, 9), url))


@fuzzed
@given(dice)
def test_results(roll: Dice) -> None:
    """Whatever the files of a result hold, the report of it can be posted."""
    text, log, repro = roll.choice(RESULTS), roll.changed(list(TRACEBACKS.values()), 3), roll.text()
    if roll.random() < 0.6:
        result = json.loads(text)
        roll.spoil(result)
        text = json.dumps(result)
    else:
        text = roll.changed([text])
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where) / "result-0"
        (folder / "original").mkdir(parents=True)
        for name, content in (("result.json", text), ("repro.py", repro), ("original/log.txt", log), ("exported_program.txt", repro)):
            (folder / name).write_bytes(content.encode("utf-8", "surrogatepass"))
        (folder / "exported_program.pt2").write_bytes(roll.randbytes(roll.randint(0, 40)))
        section = result_dir.section(reports.request(), result_dir.Folder(folder))
        assert (section.result is None) == (section.problem is not None)
        body = render(reports.report(section))
        assert size(body) <= COMMENT_LIMIT
        github_page.check(body, reports.MARKER, links=LINKS)


# --- what `torch-minify run` is given

DUMPS = {path.name: path.read_text(encoding="utf-8") for path in sorted((FIXTURES / "dumps").glob("*/*.txt"))}
CELLS = (
    "import torch\n%matplotlib inline\n",
    "!pip install x\nfor i in y:\n    %time f(i)\n",
    "async def g():\n    await h()\nawait g()\n",
    "torch.compile(f)(x)\n",
)
# As torch 2.13 names what is in an exported program, and in a package.
PARTS = ("archive_format", "byteorder", "models/model.json", "data/weights/weight_0", "data/aotinductor/model/abc.wrapper.so", "version")


def a_notebook(roll: Dice) -> str:
    outputs = [
        [],
        [{"output_type": "stream"}],
        [{"output_type": "error", "ename": "InductorError", "evalue": "", "traceback": ["torch/_inductor/x.py"]}],
    ]
    cells = [
        {
            "cell_type": "code",
            "source": roll.choice((cell, cell.splitlines(keepends=True), roll.changed([cell]))),
            "outputs": roll.choice(outputs),
        }
        for cell in CELLS
    ]
    made = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}
    if roll.random() < 0.5:
        roll.spoil(made)
    return json.dumps(made)


def a_text(roll: Dice) -> tuple[str, bytes]:
    """A trace, a dumped script, a notebook or a text that quotes one, changed or as it was."""
    name = "a.ipynb" if roll.random() < 0.3 else roll.choice(list(DUMPS))
    text = a_notebook(roll) if name == "a.ipynb" else DUMPS[name]
    if roll.random() < 0.2:
        name, text = "issue.md", f"It fails.\n\n```python\n{text}\n```\n"
    if roll.random() < 0.8:
        text = roll.changed([text], 4, 10_000)
    return name, text.encode("utf-8", "surrogatepass")


def an_archive(roll: Dice) -> tuple[str, bytes]:
    """Some of these in a zip or a tar, under names of any sort; or the files of an exported program, or of a package."""
    out, of_torch = io.BytesIO(), roll.random() < 0.4
    held = (
        [(f"program/{part}", b"x") for part in PARTS if roll.random() < 0.8]
        if of_torch
        else [a_text(roll) for _ in range(roll.randint(0, 3))]
    )
    held = [(name.removesuffix(".txt") if roll.random() < 0.8 else f"{roll.odd()}/{roll.text(2)}", data) for name, data in held]
    if of_torch or roll.random() < 0.5:
        with zipfile.ZipFile(out, "w", roll.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as packed:
            for name, data in held:
                packed.writestr(name.encode("utf-8", "replace").decode().replace("\0", "") or "x", data)
        return roll.choice(("a.pt2", "a.zip")), out.getvalue()
    with tarfile.open(fileobj=out, mode=roll.choice(("w", "w:gz"))) as rolled:
        for name, data in held:
            entry = tarfile.TarInfo(name.encode("utf-8", "replace").decode())
            entry.size, entry.type = len(data), roll.choice((tarfile.REGTYPE, tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE))
            rolled.addfile(entry, io.BytesIO(data))
    return "a.tar.gz", out.getvalue()


@fuzzed
@given(dice)
def test_inputs(roll: Dice) -> None:
    """Traces, dumps, notebooks, packages and archives: a program that can be written, or a sentence that says what it looks like."""
    name, data = a_text(roll) if roll.random() < 0.6 else an_archive(roll)
    if roll.random() < 0.2:
        name, data = f"{name}.gz", gzip.compress(data, 1)
    if roll.random() < 0.3:
        at = roll.randint(0, len(data))
        data = data[:at] + roll.randbytes(roll.choice((0, 1, 4))) + data[at + roll.choice((0, 1, 4, 4000)) :]
    with tempfile.TemporaryDirectory() as where:
        path, scratch = Path(where, name.removesuffix(".txt")), Path(where, "scratch")
        scratch.mkdir()
        path.write_bytes(data)
        try:
            found = take(Place(path, scratch, roll.choice((None, None, "0/0", roll.odd())), torch=roll.choice(("", "2.13.0+cpu"))))
            said = (found.text or "", found.then, found.otherwise, found.detail, *found.notes)
        except NotUnderstood as error:
            said = (str(error),)
        assert any(said)
        for text in said:
            text.encode()
        assert {entry.name for entry in Path(where).iterdir()} == {path.name, "scratch"}


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
    {"aoti_cpp_compile_error", "bwd_cpp_compile_error", "cpp_compile_error", "form_relu_aten", "kernel_alone"},
    {"bwd_runtime_error", "cpp_runtime_error"},
    {"dyn_fake_shape", "dyn_fake_shape_module"},
    {"form_lowering_aoti", "lowering_assert"},
    {"form_pass_aten", "pass_post_grad_custom_post_pass", "pass_post_grad_custom_pre_pass"},
    {"pass_joint_custom_post_pass", "pass_joint_custom_pre_pass"},
    {"run_aot_eager_op", "run_eager_op", "run_kernel_fallback"},
]


def alike(one: str, other: str) -> bool:
    return one == other or any({one, other} <= group for group in ALIKE)


NAMES = sorted(TRACEBACKS)
MESSAGES = [signature.message for signature in RECORDED.values() if signature.message]


@fuzzed
@given(dice)
def test_two_bugs_never_get_one_signature(roll: Dice) -> None:
    """What says nothing about a failure changes nothing, and two recorded ones stay two."""
    one, other = roll.choice(NAMES), roll.choice(NAMES)
    text = TRACEBACKS[one]
    for change in roll.sample(NOISE, k=roll.randint(0, 4)):
        text = change(text, roll.randrange(10**6))
    found = signed(one, text)
    assert found.fingerprint == RECORDED[one].fingerprint
    assert (found.fingerprint == RECORDED[other].fingerprint) == alike(one, other)


@fuzzed
@given(dice)
def test_signatures_of_any_text(roll: Dice) -> None:
    text, status = roll.changed(list(TRACEBACKS.values())), roll.choice(("raised", "signal", "timeout", "memory", "exit"))
    found = signature_of(Outcome(status=status, text=text, signal="SIGSEGV" if status == "signal" else None))
    assert found is not None
    assert Signature.model_validate_json(found.model_dump_json()) == found
    assert found.same(found)
    assert "\n" not in found.line()
    cut = excerpt.traceback(text, found.frame)
    assert excerpt.tail(text) is not None
    assert all(len(line) <= excerpt.LONGEST + 20 for line in cut.split("\n"))


@fuzzed
@given(dice)
def test_normalization_is_done_at_once(roll: Dice) -> None:
    message, name = roll.changed(MESSAGES, 4, 400), roll.choice(("RuntimeError", "Unsupported", ""))
    once = normalize(message)
    assert normalize(once) == once
    assert isinstance(essence(name, message), str)


# --- secrets


@fuzzed
@given(dice)
def test_redaction(roll: Dice) -> None:
    text = roll.changed([canaries.ALL, repr(canaries.ALL)], 8, 6_000)
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
