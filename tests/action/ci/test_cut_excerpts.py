"""Excerpts of tracebacks that end before what was raised: what else a text shows of it."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.paths import CheckoutPaths

HEADER = "Traceback (most recent call last):\n"
PACKAGES = "/w/lib/python3.12/site-packages"


def frame(path: str, function: str, source: str = "made_up()") -> str:
    return f'  File "{path}", line 7, in {function}\n    {source}\n'


PROGRAM = HEADER + frame("/w/train.py", "<module>")
COMPILER = frame(f"{PACKAGES}/torch/_dynamo/eval_frame.py", "_fn", "raise e.with_traceback(None) from e.__cause__")


def rows(log: str) -> list[dict[str, str | None]]:
    return [row for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        # frames of the same traceback, again
        (COMPILER, "Unsupported: made up"),
        # those of another one
        (frame(f"{PACKAGES}/torch/_inductor/compile_fx.py", "made_up"), "ends within a traceback"),
    ],
)
def test_frames_that_are_shown_again_are_no_failure_of_their_own(below: str, expected: str) -> None:
    whole = f"{PROGRAM}{COMPILER}torch._dynamo.exc.Unsupported: made up\n"
    (row,) = rows(f"The error is\n```\n{whole}```\n\nThe last frame\n```\n{below}```\nis not clear.\n")
    assert expected in str(row["why"])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("torch/_prims_common/wrappers.py", 1),
        ("torch/_refs/__init__.py", 1),
        ("torch/_decomp/decompositions.py", 1),
        ("torch/_compile.py", 1),
        # what is called there is no operator
        ("torch/utils/_contextlib.py", 0),
        ("made_up/ops.py", 0),
    ],
)
def test_a_log_ends_in_an_operator_that_runs_on_what_is_traced(path: str, expected: int) -> None:
    traced = frame(f"{PACKAGES}/torch/_subclasses/fake_tensor.py", "dispatch") + frame(f"{PACKAGES}/torch/_ops.py", "__call__")
    last = frame(f"{PACKAGES}/{path}", "made_up")
    assert len(rows(f"```\n{traced}{last}```\n")) == expected
    # as it runs in eager
    assert rows(f"```\n{frame('/w/train.py', 'step')}{last}```\n") == []


@pytest.mark.parametrize(
    ("program", "source", "expected"),
    [
        ("compiled = torch.compile(model)", "trainer.fit(compiled)", 1),
        ("model.net = torch.compile(model.net, fullgraph=True)", "loss = model.net(x)", 1),
        ("model.compile()", "out = model(x)", 1),
        ("pipe.unet.forward.compile()", "out = pipe.unet(x)", 1),
        ("@torch.compile(dynamic=True)\ndef step(x):", "loss = step(x)", 1),
        ("pipe.unet = torch.compile(pipe.unet)", "image = pipe(prompt=prompt)", 1),
        ("self.net = torch.compile(self.net)", "self(x)", 0),
        ("compiled = torch.compile(model)", "trainer.fit(model)", 0),
        ("compiled = torch.compile(model)", "trainer.fit(uncompiled)", 0),
        ("compiled = re.compile(model)", "trainer.fit(compiled)", 0),
        ("@made_up.compile\ndef step(x):", "loss = step(x)", 0),
    ],
)
def test_a_log_ends_below_what_the_program_compiles(program: str, source: str, expected: int) -> None:
    text = f"# A title\n\n```python\n{program}\n```\n\n```\n{HEADER}"
    called = frame("/w/train.py", "<module>", source) + frame(f"{PACKAGES}/made_up/trainer.py", "fit", "return call(")
    assert len(rows(f"{text}{called}```\n")) == expected
    # what was raised is shown
    assert rows(f"{text}{called}KeyError: 'made up'\n```\n") == []


LOWERING = frame(f"{PACKAGES}/torch/_inductor/lowering.py", "made_up")


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("# AssertionError: made up", "AssertionError: made up"),
        ("# [Bug]: `KeyError: 'made up'`", "KeyError: 'made up'"),
        ("# A KeyError: made up", "ends within a traceback"),
        ("AssertionError: made up", "ends within a traceback"),
    ],
)
def test_a_title_begins_with_what_was_raised_where_the_compiler_failed(title: str, expected: str) -> None:
    (row,) = rows(f"{title}\n\nIt shows\n```\n{PROGRAM}{LOWERING}```\n")
    assert expected in str(row["why"])
    # elsewhere the class tells nothing of the compiler
    assert rows(f"{title}\n\nIt shows\n```\n{PROGRAM}```\n") == []


def test_a_title_completes_what_is_shown_of_a_benchmark() -> None:
    shown = f"cuda train MadeUpNet\nERROR:common:\n{HEADER}{frame('/w/benchmarks/dynamo/common.py', 'check_accuracy')}{LOWERING}"
    (row,) = rows(f"# torch._inductor.exc.InductorError: RuntimeError: made up\n\n```\n{shown}```\n")
    assert (row["test"], "InductorError" in str(row["why"])) == ("MadeUpNet", True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/w/llama/cpu/inductor/run.py", 1),
        ("/w/bench/torch_compile_llama.py", 1),
        ("/w/lib/python3.12/site-packages/made_up/torch_compile.py", 0),
        ("/w/torch/inductor_made_up.py", 0),
        ("/w/llama/run.py", 0),
        ('/w/vision/test/smoke_test.py", line 3, in smoke_test_compile\n  File "/w/a.py', 1),
        ('/w/vision/test/smoke_test.py", line 3, in smoke_test_recompute\n  File "/w/a.py', 0),
    ],
)
def test_a_log_ends_in_a_program_whose_name_says_that_it_compiles(path: str, expected: int) -> None:
    called = HEADER + frame(path, "<module>") + frame(f"{PACKAGES}/made_up/generate.py", "generate", "return call(")
    assert len(rows(f"# It fails\n\n```\n{called}```\n")) == expected


def test_a_comment_is_no_title() -> None:
    comment = "# model = torch.compile(model)  # <-- this does not work. InductorError: LoweringException: made up"
    assert rows(f"{comment}\nmodel.sample = torch.compile(model.sample)  # <-- this works\n") == []


def test_a_file_of_tests_that_is_cut_off_while_it_is_imported() -> None:
    shown = (
        "_____ ERROR collecting tests/dynamo/test_a.py _____\n"
        'tests/dynamo/test_a.py:10: in <module>\n    made_up = load("made_up")\n'
        "../lib/torch/_dynamo/testing.py:399: in load\n    return Loader().load_module()\n"
        "<frozen importlib._bootstrap_external>:462: in _check_name_wrapper\n    ???\n"
    )
    assert rows(f"# A title\n\n```\n==================================== ERRORS ====================================\n{shown}```\n") == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("submod_0 = self.submod_0(l_input_ids_, s0)", 1),
        ("out = self.linear(l_self_modules_layers_modules_0_parameters_weight_)", 1),
        # one that somebody traced by hand
        ("out = self.linear(x)", 0),
    ],
)
def test_a_log_ends_in_a_graph_that_dynamo_made(source: str, expected: int) -> None:
    called = frame(f"{PACKAGES}/torch/nn/modules/module.py", "_call_impl") + frame("<eval_with_key>.98", "forward", source)
    assert len(rows(f"# It fails\n\n```\n{called}")) == expected


@pytest.mark.parametrize(("module", "expected"), [("torch/_inductor/runtime/hints.py", 0), ("made_up/hints.py", 1)])
def test_a_log_ends_where_a_module_of_the_compiler_was_not_imported(module: str, expected: int) -> None:
    above = HEADER + frame(f"{PACKAGES}/{module}", "<module>", "from made_up import A") + "ModuleNotFoundError: No module named 'made_up'\n"
    joint = "\nDuring handling of the above exception, another exception occurred:\n\n"
    assert len(rows(f"# A title\n\n```\n{above}{joint}{PROGRAM}{COMPILER}```\n")) == expected
