"""The class that a title, or a report's own line, names above a traceback that ends before what was raised."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.paths import CheckoutPaths

CUT = """\
```
  File "/w/lib/python3.10/site-packages/torch/_inductor/compile_fx.py", line 1246, in compile_fx_aot
    compiled_lib_path = compile_fx(
  File "/w/lib/python3.10/site-packages/torch/_inductor/compile_fx.py", line 1427, in compile_fx
    return compile_fx(
  File "/w/lib/python3.10/conte"""
CUT_OFF = "the log ends within a traceback, in the compiler"


def whys(log: str) -> list[str]:
    return [str(row["why"]) for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("torch._dynamo.exc.UserError: made up", "UserError"),
        ("[made up] `InductorError` when I run it", "InductorError"),
        ("Error `torch._inductor.exc.LoweringException` when running it", "LoweringException"),
        ("torch.compile() BackendCompilerFailed: made_up raised RuntimeError", "BackendCompilerFailed"),
        ("[Help] \u201ctorch._dynamo.exc.UserError: made up\u201d", "UserError"),
        ("It fails with <class 'torch._dynamo.exc.UserError'>: made up", "UserError"),
        ("[made up] torch._inductor.exc.InductorError ```made.up```", "InductorError"),
        ("torch._inductor.exc.InductorError", "InductorError"),
    ],
)
def test_a_title_names_what_was_raised(title: str, name: str) -> None:
    assert [why for why in whys(f"# {title}\n\n{CUT}") if name in why and CUT_OFF not in why] != []


@pytest.mark.parametrize(
    "title",
    [
        "Improve torch._dynamo.exc.UserError for what is made up",
        "It should raise torch._dynamo.exc.UserError: made up",
        "I expected BackendCompilerFailed: made up",
        "It does not catch InductorError: made up",
        "made.InductorError: made up",
        "A question about InductorErrors: made up",
    ],
)
def test_a_title_that_is_about_a_class(title: str) -> None:
    assert [CUT_OFF in why for why in whys(f"# {title}\n\n{CUT}")] == [True]


@pytest.mark.parametrize(
    "fields",
    [
        "- **Node ID:** 3\n- **Exception Type:** {}\n- **Exception Message:** {}",
        "Exception Type: {}\nException Value: {}",
        "* **Type**: `{}`\n* **Message**: {}",
        "error_type: {}\nerror_message: {}",
        "Error class: {}\n\nError text: {}",
    ],
)
def test_a_report_in_fields(fields: str) -> None:
    report = f"# A title\n\n## Error Details\n{fields}\n\n## Stack Trace\n{CUT}"
    shown = whys(report.format("torch._inductor.exc.InductorError", "LoweringException: AssertionError: "))
    assert [("InductorError: LoweringException: AssertionError" in why, CUT_OFF in why) for why in shown] == [(True, False)]
    assert whys(report.format("torch._inductor.exc.InductorError", "RuntimeError: Compiler: cl is not found.")) == []
    assert whys(report.format("ValueError", "made up").replace("_inductor", "made_up")) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("I trained it and encountered `torch._inductor.exc.InductorError: AssertionError`.", 1),
        ("There I get an `InductorError: AssertionError`.", 1),
        ("I have not encountered `torch._inductor.exc.InductorError: AssertionError`.", 0),
        ("This is about `torch._inductor.exc.InductorError: AssertionError`.", 0),
    ],
)
def test_words_that_say_what_was_met(words: str, expected: int) -> None:
    assert len(whys(f"# A title\n\n{words}\nIt runs without torch.compile.\n")) == expected


ALONE = "It runs on one GPU.\n\n```yml\nservices:\n  a: 1\n```\n"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("[Bug]: torch._dynamo.exc.UserError: made up", "UserError: made up"),
        ("A server crashes with InductorError: AssertionError in a pass", "InductorError: AssertionError in a pass"),
        ("AssertionError: expected size 25==13, stride 5==4 at dim=0", "stride 5==4"),
        ("It fails with AssertionError: Node made_up_2 was invalid, but is output", "Node made_up_2 was invalid"),
        ("RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten", "accessing tensor output"),
        ("Dynamo failed to run FX node with fake tensors", "the text tells of an error"),
        ("[Bug]: Constraints violated (made_up)! Not all values are valid", "the text tells of an error"),
        ("AssertionError: made up with torch.compile()", "AssertionError: made up"),
        ("torch.export and `NameError('made_up is not defined')` on a model", "the text tells of an error"),
        ("torch.compile: AssertionError: failed to reach fixed point", "failed to reach fixed point"),
        ("`torch_inductor`: `AttributeError: made up`", "AttributeError: made up"),
        ("torch.compile AssertionError", "the text tells of an error"),
        ("torch.compile causes an AssertionError in a chat", "the text tells of an error"),
        ("torch.compile and its AssertionErrors", None),
        ("AssertionError: made up without torch.compile", None),
        ("torch.compile should not raise AssertionError: made up", None),
        ("AttributeError: module 'torch' has no attribute 'compile'", None),
        ("torch.compile: ModuleNotFoundError: No module named 'made_up'", None),
        ("torch.compile: OutOfMemoryError: out of memory", None),
        ("Fix AssertionError: made up with torch.compile", None),
        ("AssertionError: expected 25, got 13", None),
        ("Fix torch._dynamo.exc.UserError: made up", None),
        ("[CI] Skip a test that hits torch._dynamo.exc.UserError: made up", None),
        ("feat(a): avoid torch._dynamo.exc.UserError: made up", None),
        ("Handle InductorError: made up", None),
        ("It should raise torch._dynamo.exc.UserError: made up", None),
        ("A question about torch._dynamo.exc.UserError", None),
    ],
)
@pytest.mark.parametrize("above", ["", "made/up · issue #1 · open\nlabels: bug\n"])
def test_a_title_above_a_text_that_shows_no_error(title: str, name: str | None, above: str) -> None:
    shown = whys(f"{above}# {title}\n\n{ALONE}")
    assert [name is not None and name in why for why in shown] == ([True] if name else [])
    # what a text of many lines says in its first one is one line of a log
    assert whys(f"# {title}\n" + "it runs\n" * 300) == []


def test_a_title_below_the_name_of_a_page() -> None:
    page = f"made/up · issue #1 · open\nlabels: bug\n# A made up torch._dynamo.exc.UserError: made up\n\n[turn 0]\n{CUT}"
    assert [("UserError: made up" in why, CUT_OFF in why) for why in whys(page)] == [(True, False)]
    below = "a\nb\nc\n# torch._dynamo.exc.UserError: made up\n\nIt is about what is made up.\n"
    assert whys(below) == []
