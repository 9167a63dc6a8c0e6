"""What PyTorch's `benchmarks/dynamo` say in a log: a line for each model, and a table of those that changed."""

from __future__ import annotations

import bisect
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from bot.action.ci.failing_test import NO_HINT, Failure, Hint, Seen, allowed_variables
from bot.action.ci.tracebacks import Printed

# A frame of theirs in a traceback.
FRAME = "benchmarks/dynamo/"

_MODEL = re.compile(r"(?:^|\s|\])(?:cuda|cpu|xpu|mps|hpu|rocm)\s{1,20}(?:eval|train)\s{1,20}(?P<model>[\w./-]{1,200})(?:\s|$)")
_GOLDEN = re.compile(r"fp64 golden ref were not generated for (?P<model>[\w./-]{1,200})\.")
_ENDED = re.compile(
    r"^(?P<how>pass(?:_due_to_skip)?|fail_to_run|fail_accuracy|infra_error|timeout|OOM|model_fail_to_load|eager_\w{1,60}|FAIL|TIMEOUT|ERROR)$"
    # how much faster it was: it ran
    r"|^\d{1,5}\.\d{3}x(?: SAME| p=[\d.]{1,10})?$"
)
_ROW = re.compile(
    # somebody may tell of it in a list
    r"^(?:\s{0,12}[-*] (?:\[ \] )?)?(?P<model>[\w./-]{1,200})\s{1,200}FAIL:\s{1,100}"
    r"(?P<what>(?P<count>\w{1,60})=(?P<got>\S{1,100}), expected=\S{1,100})\s*$"
)
# The end of such a table, with their names on the next line.
_REGRESSED = re.compile(r"^(?:\s{0,12}[-*] )?Error: \d{1,5} models have accuracy status regressed:$")
_COMMAND = re.compile(
    r"^(?:\++|\$) (?P<variables>(?:[A-Z_][A-Z0-9_]{0,100}=\S{0,300} )*)python (?P<words>benchmarks/dynamo/(?:\w{1,60})\.py .{1,4000})$"
)
_RUNNERS = ("huggingface.py", "timm_models.py", "torchbench.py")
MAX_NAMES = 20_000
# Options of a whole run that make no sense for one model.
_WITH_VALUE = ("--output", "--output-directory", "--total-partitions", "--partition-id", "--only", "-k", "--exclude", "-x")


@dataclass
class _Run:
    """One model's run: the lines between which it stood, and its last word."""

    model: str
    start: int
    end: int
    how: str = ""
    hint: Hint = NO_HINT


def _runs(lines: list[str]) -> list[_Run]:
    runs: list[_Run] = []
    hint: tuple[str, str] = ("", "")
    for i, line in enumerate(lines):
        if line.startswith(("+", "$")) and (command := _COMMAND.match(line)):
            if command["words"].split(" ", 1)[0].rpartition("/")[2] in _RUNNERS:
                hint = (command["variables"], command["words"])
        elif (" eval " in line[:2000] or " train " in line[:2000]) and (found := _MODEL.search(line[-600:])):
            if runs:
                runs[-1].end = min(runs[-1].end, i)
            # the last word stands behind the model, where nothing was printed between
            ended = _ENDED.match(line[-600:][found.end() :].strip())
            runs.append(_Run(found["model"], i, i if ended else len(lines), _how(ended) if ended else "", _only(hint, found["model"])))
        elif runs and not runs[-1].how and (ended := _ENDED.match(line)):
            runs[-1].how, runs[-1].end = _how(ended), i
    return runs


def _how(ended: re.Match[str]) -> str:
    return ended["how"] or "pass"


def _only(command: tuple[str, str], model: str) -> Hint:
    """The command of a run, for that model alone."""
    variables, line = command
    try:
        words = shlex.split(line)
    except ValueError:
        return NO_HINT
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word.partition("=")[0] in _WITH_VALUE:
            skip = not skip and "=" not in word
        else:
            kept.append(word)
    return Hint(allowed_variables(variables), shlex.join(["python", *kept, "--only", model])) if kept else NO_HINT


def failures(lines: list[str], printed: Printed) -> Iterator[Failure]:
    """The models in `lines` that failed, with the last of the tracebacks `printed` that was printed while each ran.

    Where a table compares with what was expected, only what it calls failed; a model that fails as expected is none.
    """
    runs = _runs(lines)
    tabled: dict[str, tuple[int, re.Match[str]]] = {}
    for i, line in enumerate(lines):
        row = _ROW.match(line) if "FAIL:" in line[:500] else None
        # a table of graph breaks stands below that of accuracy, which alone says that the model failed
        if row and (row["count"] == "accuracy" or row["model"] not in tabled):
            tabled[row["model"]] = (i, row)
    by_model: dict[str, list[_Run]] = defaultdict(list)
    for each in runs:
        by_model[each.model].append(each)
    taken: set[int] = set()
    for at, row in tabled.values():
        ran = by_model[row["model"]]
        # one job may run a model for inference and then for training, each with a table
        run = next((each for each in reversed(ran) if each.start < at), next(reversed(ran), None))
        yield _failure(row["model"], row["got"], row["count"] == "accuracy", row["what"], run, printed, taken)
    for i, line in enumerate(lines[:-1]):
        if "Error: " in line[:20] and _REGRESSED.match(line):
            named = [model for model in lines[i + 1][:MAX_NAMES].split() if model not in tabled]
            yield from (Failure(model, model, "", seen=Seen.NAMED, note="its accuracy status regressed") for model in named)
    if not tabled:
        for run in runs:
            if run.how and not run.how.startswith("pass"):
                yield _failure(run.model, run.how, True, run.how, run, printed, taken)
    if tabled:
        return
    starts = [run.start for run in runs]
    for block in printed.all:
        at = bisect.bisect_left(starts, block.start) - 1
        around = runs[at] if at >= 0 and block.start < runs[at].end else None
        # in no model's run, or in one without a last word: the harness's own; its frames may be left out of the model's last one
        is_last = around is not None and printed.between(around.start, around.end)[-1] is block
        if block.start in taken or (around and around.how) or not (is_last or FRAME in block.text):
            continue
        found = next((match for line in reversed(lines[max(block.start - 5, 0) : block.start]) if (match := _GOLDEN.search(line))), None)
        model = found["model"] if found else around.model if around else ""
        yield Failure(model or "a benchmark", model, block.text, hint=around.hint if around else NO_HINT)


def _failure(model: str, got: str, is_accuracy: bool, what: str, run: _Run | None, printed: Printed, taken: set[int]) -> Failure:
    hint = run.hint if run else NO_HINT
    if not is_accuracy:
        return Failure(model, model, "", seen=Seen.COUNT, note=what, hint=hint)
    if got == "fail_accuracy":
        return Failure(model, model, "", seen=Seen.NUMBERS, note=what, hint=hint)
    if got in ("timeout", "TIMEOUT"):
        return Failure(model, model, "", seen=Seen.TIMEOUT, note=what, hint=hint)
    if got not in ("fail_to_run", "FAIL", "ERROR"):
        return Failure(model, model, "", seen=Seen.COUNT, note=what, hint=hint)
    inside = printed.between(run.start, run.end) if run else ()
    taken.update(block.start for block in inside)
    if inside:
        return Failure(model, model, inside[-1].text, note=what, hint=hint)
    return Failure(model, model, "", seen=Seen.NAMED, note=what, hint=hint)
