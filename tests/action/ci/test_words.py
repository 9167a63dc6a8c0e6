"""What words alone tell: of compiling in a text that names the compiler, of other results, of a test that a link or a command names."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.paths import CheckoutPaths

HERE = "I run `torchrun train.py --made.compile` here."
REPORT = "### Describe the bug\n\n{}\n"
OTHERS = "```\nf = torch.compile(g)\n```\n```\nValueError: made up\n```\n"
LINK = "It fails ([recent examples](https://torch-ci.com/failure{}inductor%2Ftest_pool.py%3A%3ACpuTests%3A%3Atest_pool_cpu{})).\n"
SWITCHED_OFF = "# DISABLED {} (__main__.CpuTests)\n\n"
TEST = "test/inductor/test_pool.py::CpuTests::test_pool_cpu"
SHOWN = """\
=================================== FAILURES ===================================
_________________________ TestMadeUp.test_made_up_cpu __________________________
Traceback (most recent call last):
  File "/w/lib/python3.10/site-packages/torch/autograd/made_up.py", line 8, in made_up
    result = f(x)
  File "/w/lib/python3.10/site-packages/torch/made_up.py", line 9, in f
    return g(  # Calls"""


def rows(log: str) -> list[tuple[str | None, str | None]]:
    found = candidates.rows(log, CheckoutPaths([]))
    return [(row["verdict"], row["test"]) for row in found if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize(("before", "behind"), [("?failureCaptures=%5B%22", "%22%5D"), ("/", "")])
def test_a_link_names_the_file_of_a_test_that_is_switched_off(before: str, behind: str) -> None:
    link = LINK.format(before, behind)
    assert rows(SWITCHED_OFF.format("test_pool_cpu") + link) == [("possible", TEST)]
    # of another test
    assert rows(SWITCHED_OFF.format("test_other_cpu") + link) == []
    assert rows(SWITCHED_OFF.format("test_pool_cpu") + link.replace("inductor%2F", "made%2F").replace("torch-ci", "made-up")) == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("PYTORCH_TEST_WITH_INDUCTOR=1 python test/test_made_up.py -k test_made_up_cpu", True),
        ("python test/test_made_up.py -k test_made_up_cpu", False),
        ("PYTORCH_TEST_WITH_INDUCTOR=1 python test/test_made_up.py -k test_other_cpu", False),
    ],
)
def test_a_command_names_the_file_of_the_test_that_is_shown(command: str, expected: bool) -> None:
    found = rows(f"# A title\n\n```\n{command}\n```\n\n```\n{SHOWN}")
    assert found == ([("possible", "test/test_made_up.py::TestMadeUp::test_made_up_cpu")] if expected else [])


@pytest.mark.parametrize(("title", "expected"), [("torch.compile fails with a kernel", True), ("A kernel", False)])
def test_what_the_words_say_counts_where_torch_logged_a_stack(title: str, expected: bool) -> None:
    mark = "E1001 22:52:30.986000 12 torch/_inductor/compile_worker/subproc_pool.py:196] "
    logged = ['  File "/w/site-packages/triton/compiler/compiler.py", line 2, in compile', "    return f(", "triton.compiler.errors"]
    text = "\n".join(mark + line for line in logged)
    assert bool(rows(f"# {title}\n\n```\n{text}")) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("compile failed for made up when it is used", True),
        ("[made up] compiled model crashes in it", True),
        ("Dynamo throws in a made-up module", True),
        # another compiler's, or none
        ("compile flags fail in it", False),
        ("it fails as it was compiled with CUDA", False),
        ("Fix compile failure for made up", False),
        ("Should compile fail for made up?", False),
    ],
)
def test_words_that_mean_the_compiler_where_the_text_names_it(title: str, expected: bool) -> None:
    assert bool(rows(f"# {title}\n\n{HERE}\n")) == expected
    assert rows(f"# {title}\n\nI run `train.py` here.\n") == []


def test_a_log_has_no_words() -> None:
    # a log may tell of another compiler
    frames = 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g('
    assert rows(f"# A title\n\n{HERE}\n\n```\n!!! Failed to compile a model\n{frames}") == []


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("torch.compile does not work on a made-up model", True),
        ("made_up x torch.compile don't work", True),
        ("cannot use torch.compile with a made-up strategy", True),
        ("a made-up model fail in dynamo when it is called", True),
        ("ptxas segfault with PT2", True),
        ("torch.compile causes it to crash", True),
        ("A mismatch when using torch.compile", True),
        ("A test of torch.compile that should fail when it is called", False),
        ("inductor/test_made_up.py gets segfault but it ends well", True),
        ("Unable to leave the stage after Inductor tests", False),
        ("torch.compile not working effectively", False),
    ],
)
def test_how_a_title_says_that_something_fails(title: str, expected: bool) -> None:
    assert bool(rows(f"# {title}\n\nIt is made up.\n")) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("3 runs reproduced the bug. With torch.compile the output is all zeros while eager is right.", True),
        ("3 runs. With torch.compile the output is all zeros while eager is right.", False),
        ("### RuntimeError thrown by torch.compile in a script", True),
        (REPORT.format("This program:\n\n- runs in eager mode\n- but it fails there with torch.compile"), True),
        ("### A way to make torch.compile errors shorter", False),
        ("#12 torch.compile fails", False),
    ],
)
def test_a_heading_and_a_list_say_it(words: str, expected: bool) -> None:
    assert bool(rows(f"# A title\n\n{words}\n")) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("torch.compile produces inconsistent results", True),
        ("torch.compiled kernels can output incorrect results", True),
        ("torch.compile generates wrong code on one machine", True),
        ("[Eager/Compile Divergence] made_up failed", True),
        ("torch.compile gives a made-up thing", False),
        ("Does torch.compile produce inconsistent results?", False),
    ],
)
def test_an_error_of_a_program_whose_results_are_others(title: str, expected: bool) -> None:
    assert bool(rows(f"# {title}\n\n{OTHERS}")) == expected
