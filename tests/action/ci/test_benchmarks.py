"""What PyTorch's `benchmarks/dynamo` say in a log."""

from __future__ import annotations

import pytest

from bot.action.ci import benchmarks, lines
from bot.action.ci.failing_test import Failure, Hint, Seen
from bot.action.ci.tracebacks import Printed

STAMP = "2026-07-30T00:30:04.4089970Z "
RAISED = """\
Traceback (most recent call last):
  File "/w/benchmarks/dynamo/common.py", line 2200, in warmup
    fn(model, example_inputs)
  File "/x/site-packages/torch/_inductor/graph.py", line 3, in f
    g()
torch._inductor.exc.InductorError: LoweringException: made up"""
COMMAND = "+ python benchmarks/dynamo/huggingface.py --ci --accuracy --inductor --device cpu"


def failures(log: str) -> list[Failure]:
    read = lines.read(log)
    return list(benchmarks.failures(read.text, Printed(read)))


def raised(failure: Failure) -> str:
    """The traceback of the `failure`, up to the first line of its message: what is printed below may belong to that."""
    return "\n".join(failure.text.split("\n")[:6])


def told(log: str) -> list[tuple[str, Seen, str, str]]:
    return [(each.test, each.seen, raised(each), each.note) for each in failures(log)]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("fail_accuracy", (Seen.NUMBERS, "")),
        ("fail_to_run", (Seen.ERROR, RAISED)),
        ("FAIL", (Seen.ERROR, RAISED)),
        ("timeout", (Seen.TIMEOUT, "")),
        ("TIMEOUT", (Seen.TIMEOUT, "")),
        ("OOM", (Seen.COUNT, "")),
        ("eager_1st_run_fail", (Seen.COUNT, "")),
        ("model_fail_to_load", (Seen.COUNT, "")),
        ("infra_error", (Seen.COUNT, "")),
    ],
)
@pytest.mark.parametrize("behind", [True, False])
def test_the_last_word_of_a_model(word: str, expected: tuple[Seen, str], behind: bool) -> None:
    """It stands behind the model where nothing was printed between."""
    printed = "" if behind and not expected[1] else f"WARNING:common:made up\n{RAISED if expected[1] else 'made up'}\n"
    log = f"loading model: 0it [00:05, ?it/s]\ncpu  eval  hf_T5                              {printed}{word}\ncpu  eval  hf_Bart  pass\n"
    assert told(log) == [("hf_T5", *expected, word)]
    assert told("".join(f"{STAMP}\x1b[1m{line}\x1b[0m\r\n" for line in log.splitlines())) == told(log)


@pytest.mark.parametrize("word", ["pass", "pass_due_to_skip", "1.234x", "0.987x SAME", "12.345x p=0.00"])
def test_a_model_that_ran(word: str) -> None:
    """What it printed was caught."""
    assert told(f"cuda train resnet50 \n{RAISED}\n{word}\n") == []


def test_a_model_without_a_last_word() -> None:
    """The log ends, or the process does: what it printed in the harness may have ended it, and the last of all that it printed."""
    last = RAISED.replace("/w/benchmarks/dynamo/", "/w/")
    found = failures(f"{COMMAND}\ncuda train timm/resnet-50.v2 \n{RAISED}\n\ncuda train timm/resnet-51 \n{last}\n\n{last}\n")
    assert [(each.test, each.seen, raised(each)) for each in found] == [
        ("timm/resnet-50.v2", Seen.ERROR, RAISED),
        ("timm/resnet-51", Seen.ERROR, last),
    ]


def test_what_the_harness_raised_beside_the_models() -> None:
    golden = "WARNING:common:fp64 golden ref were not generated for hf_T5. Setting accuracy check to cosine"
    assert [(each.test, each.name) for each in failures(f"{golden}\n{RAISED}\n")] == [("hf_T5", "hf_T5")]
    assert [(each.test, each.name) for each in failures(f"{RAISED}\n")] == [("", "a benchmark")]
    assert failures(RAISED.replace("/w/benchmarks/dynamo/", "/w/")) == []


def test_the_last_traceback_of_a_run_is_the_failure() -> None:
    """Each try prints one, and so do children."""
    first, of_next = RAISED.replace("made up", "earlier"), RAISED.replace("made up", "of b")
    log = f"cpu  eval  a \n{first}\n\n{RAISED}\n\nfail_to_run\ncpu  eval  b \n{of_next}\n\npass\n"
    assert told(log) == [("a", Seen.ERROR, RAISED, "fail_to_run")]


TABLE = """\
+ python benchmarks/dynamo/check_accuracy.py --actual /w/a.csv --expected /w/b.csv
hf_Bart                             PASS
hf_T5                               FAIL:               accuracy={got}, expected=pass
hf_GPT2                             IMPROVED:           accuracy=pass, expected=fail_to_run
hf_Albert                           PASS_BUT_FLAKY
"""


@pytest.mark.parametrize(
    ("got", "expected"),
    [("fail_accuracy", (Seen.NUMBERS, "")), ("fail_to_run", (Seen.ERROR, RAISED)), ("eager_fail_to_run", (Seen.COUNT, ""))],
)
def test_what_a_table_calls_failed(got: str, expected: tuple[Seen, str]) -> None:
    """A model that fails as expected is none."""
    runs = f"{COMMAND}\ncpu  eval  hf_Bart \n{RAISED}\n\nfail_to_run\ncpu  eval  hf_T5 \n{RAISED if expected[1] else 'made up'}\n{got}\n"
    (found,) = failures(runs + TABLE.format(got=got))
    assert (found.test, found.seen, raised(found)) == ("hf_T5", *expected)
    assert (found.note, found.hint.program) == (f"accuracy={got}, expected=pass", f"{COMMAND[2:]} --only hf_T5")


def test_a_table_without_the_runs() -> None:
    assert told(TABLE.format(got="fail_to_run")) == [("hf_T5", Seen.NAMED, "", "accuracy=fail_to_run, expected=pass")]


@pytest.mark.parametrize("breaks", ["hf_T5    FAIL:               graph_breaks=4, expected=2", "hf_T5    PASS"])
def test_a_table_of_graph_breaks_below_that_of_accuracy(breaks: str) -> None:
    log = f"cpu  eval  hf_T5 \n{RAISED}\n\nfail_to_run\n{TABLE.format(got='fail_to_run')}{breaks}\n"
    assert [(each.test, each.seen, each.note) for each in failures(log)] == [("hf_T5", Seen.ERROR, "accuracy=fail_to_run, expected=pass")]
    assert told("hf_T5    FAIL:               graph_breaks=4, expected=2\n") == [("hf_T5", Seen.COUNT, "", "graph_breaks=4, expected=2")]


def test_a_model_that_runs_for_inference_and_for_training() -> None:
    """Each of the two has its own table."""
    eager = RAISED.replace("made up", "in training")
    runs = (
        f"{COMMAND} --inference\ncuda eval  hf_T5 \n{RAISED}\n\nfail_to_run\n{TABLE.format(got='fail_to_run')}"
        f"{COMMAND} --training\ncuda train hf_T5 \n{eager}\n\npass\nhf_T5     PASS\n"
    )
    (found,) = failures(runs)
    assert raised(found) == RAISED
    assert found.hint.program == f"{COMMAND[2:]} --inference --only hf_T5"


def test_the_end_of_a_table() -> None:
    log = f"{TABLE.format(got='fail_accuracy')}\nError: 3 models have accuracy status regressed:\n    hf_T5 timm/vit_small hf_Bert\n"
    assert told(log) == [
        ("hf_T5", Seen.NUMBERS, "", "accuracy=fail_accuracy, expected=pass"),
        ("timm/vit_small", Seen.NAMED, "", "its accuracy status regressed"),
        ("hf_Bert", Seen.NAMED, "", "its accuracy status regressed"),
    ]


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (
            "+ TORCHINDUCTOR_MAX_AUTOTUNE=1 LD_PRELOAD=/made/up.so python benchmarks/dynamo/torchbench.py --accuracy --only hf_Bart",
            Hint(("TORCHINDUCTOR_MAX_AUTOTUNE=1",), "python benchmarks/dynamo/torchbench.py --accuracy --only hf_T5"),
        ),
        (
            "$ python benchmarks/dynamo/timm_models.py --only=a -k 'a b' -x c --output /w/a.csv --partition-id=1 --amp",
            Hint((), "python benchmarks/dynamo/timm_models.py --amp --only hf_T5"),
        ),
        ("+ python benchmarks/dynamo/torchbench.py --only 'cut off", Hint()),
        ("+ python benchmarks/dynamo/check_accuracy.py --actual a", Hint()),
        ("+ echo python benchmarks/dynamo/torchbench.py --accuracy", Hint()),
    ],
)
def test_the_command_of_one_model(command: str, hint: Hint) -> None:
    (found,) = failures(f"{command}\ncpu  eval  hf_T5 \nfail_accuracy\n")
    assert found.hint == hint
