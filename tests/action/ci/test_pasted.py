"""What copying, pages and other writers do to a log: the same failure is read out of it, and none where there was none."""

from __future__ import annotations

import html
import json
from collections.abc import Callable

import pytest

from bot.action.ci import candidates, lines
from bot.action.ci.paths import CheckoutPaths

FRAMES = """\
Traceback (most recent call last):
  File "/w/train.py", line 41, in <module>
    main(config)
  File "/w/lib/python3.12/site-packages/torch/_dynamo/convert_frame.py", line 986, in _compile
    guarded_code = compile_inner(code, one_graph, hooks, transform)
  File "/w/lib/python3.12/site-packages/torch/_inductor/lowering.py", line 2020, in made_up
    return lowered(x)
"""
SAID = "torch._inductor.exc.InductorError: LoweringException: AssertionError: it is made up of 'parts'"
LOG = FRAMES + SAID
EAGER = LOG.replace("torch/_dynamo/convert_frame.py", "made_up/loop.py").replace("torch/_inductor/lowering.py", "made_up/ops.py")
EAGER = EAGER.replace(SAID, "ValueError: it is made up of 'parts'")


def before(mark: str) -> Callable[[str], str]:
    """Put `mark` before each line; `#` in it is the line's number."""
    return lambda log: "\n".join(mark.replace("#", str(i)) + line for i, line in enumerate(log.split("\n"), 7))


def broken(width: int) -> Callable[[str], str]:
    return lambda log: "\n".join(line[i : i + width] for line in log.split("\n") for i in range(0, len(line), width))


def without(first: int, last: int, instead: str) -> Callable[[str], str]:
    def change(log: str) -> str:
        shown = log.split("\n")
        return "\n".join([*shown[:first], instead, *shown[last:]])

    return change


CHANGES: dict[str, Callable[[str], str]] = {
    "as it is": lambda log: log,
    # other writers
    "srun": before("3: "),
    "srun, padded": before(" 3: "),
    "a host": before("gpu-node-017: "),
    "syslog": before("May  1 12:00:0# gpu-node python[1234]: "),
    "logging": before("2024-05-01 12:00:0#,123 - trainer - ERROR - "),
    "logging, with bars": before("2024-05-01 12:00:0#.123 | ERROR    | trainer:main:12 - "),
    "a rank's logger": before("[rank0]:[made-up] 2024-05-01 12:00:0#,123 - root - ERROR - "),
    "a date": before("2024-05-01 12:00:0#.123 "),
    "numbers of lines": lambda log: "\n".join(f"{i:4d} {line}" for i, line in enumerate(log.split("\n"), 97)),
    "numbers of lines, with bars": lambda log: "\n".join(f"{i:4d} | {line}" for i, line in enumerate(log.split("\n"), 97)),
    "numbers of lines, apart": lambda log: "\n".join(f"{i:6d}  {line}" for i, line in enumerate(log.split("\n"), 97)),
    "seconds of a step": lambda log: "\n".join(f"[test:L{i}:{i // 7}s] {line}" for i, line in enumerate(log.split("\n"))),
    "seconds since a start": lambda log: "\n".join(f"+{i // 10}.{i % 10}s {line}" for i, line in enumerate(log.split("\n"))),
    "bars": before("  | "),
    "a tab": before("\t"),
    "lines that end twice": lambda log: log.replace("\n", "\n\n"),
    "lines that end thrice": lambda log: log.replace("\n", "\r\r\n"),
    "a container": before("server | "),
    "a stream": before("stderr: "),
    "tabs": before("\t"),
    "quoted": before("> "),
    "quoted twice": before("> > "),
    "an item of a list": lambda log: "1. It says\n" + before("   ")(f"```python\n{log}\n```") + "\n2. and so on",
    "indented": before("    "),
    # pages, editors and terminals
    "entities": html.escape,
    "curly quotes": lambda log: log.replace('File "', "File \u201c").replace('", line', "\u201d, line").replace("'", "\u2019"),
    "blanks that are none": lambda log: log.replace("    ", "\xa0\xa0\xa0\xa0"),
    "escapes of Markdown": lambda log: log.replace("_", "\\_"),
    "colors without their character": lambda log: log.replace("/w/", "[35m/w/").replace('", line', '[0m", line'),
    "colors that are spelled": lambda log: log.replace(", line 9", r", line \x1b[35m9").replace(", in ", r"\x1b[0m, in "),
    "HTML": lambda log: f"<details>\n<summary>log</summary>\n<pre>{log}</pre>\n</details>\nThanks!",
    "links": lambda log: log.replace("line 986", "[line 986](https://made.up/convert_frame.py?l=986)"),
    "broken at 100": broken(100),
    "broken at 60": broken(60),
    "a string": lambda log: json.dumps({"level": "ERROR", "error": log}),
    "a string of a worker": lambda log: f"worker 3 failed: {log!r}",
    "the end of a string": lambda log: repr(log.partition("\n")[2]),
    "one line": lambda log: log.replace("\n", " "),
    "empty lines between": lambda log: log.replace("\n", "\n\n"),
    # what people leave out
    "dots": without(2, 3, "..."),
    "dots, indented": without(2, 3, "    ..."),
    "a word": without(2, 3, "[... 30 lines omitted ...]"),
    "snipped": without(2, 3, "<snip>"),
    "the header": lambda log: log.partition("\n")[2],
    "source": lambda log: "\n".join(line for line in log.split("\n") if not line.startswith("    ")),
    "words above": lambda log: "I tried it with the newest version of it.\n" * 20 + log,
}  # fmt: skip


def verdicts(log: str) -> list[str | None]:
    return [row["verdict"] for row in candidates.rows(log, CheckoutPaths(())) if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_failure_is_found(change: Callable[[str], str]) -> None:
    assert verdicts(change(LOG)) == ["suggested"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_none_is_made_of_an_eager_one(change: Callable[[str], str]) -> None:
    assert verdicts(change(EAGER)) == []


@pytest.mark.parametrize(
    "mark",
    [
        "W0716 11:20:08.895000 139860 torch/_dynamo/convert_frame.py:1125] ",
        "3: W0716 11:20:08.895000 139860 torch/_dynamo/convert_frame.py:1125] ",
        "2024-05-01 12:00:01,123 - trainer - WARNING - ",
        "trainer (info): ",
        "// ",
    ],
)
def test_what_was_no_error_is_none(mark: str) -> None:
    assert verdicts(before(mark)(LOG)) == []


def test_a_string_in_one_line_that_was_no_error() -> None:
    warned = before("W0716 11:20:08.895000 139860 torch/_dynamo/convert_frame.py:1125] ")(LOG)
    assert verdicts(CHANGES["one line"](warned)) == verdicts(CHANGES["a string"](warned)) == []


def test_who_wrote_a_line() -> None:
    log = "\n".join(
        f"2024-05-01 12:00:{i:02d} node7 {rank}: {line}" for i, line in enumerate(FRAMES.rstrip().split("\n")) for rank in (1, 2)
    )
    read = lines.read(log)
    assert set(read.who) == {"node7 1:", "node7 2:"}
    assert [line for line, who in zip(read.text, read.who, strict=True) if who == "node7 2:"] == FRAMES.rstrip().split("\n")
    # of numbers that count nobody knows whose they are
    read = lines.read(CHANGES["numbers of lines"](FRAMES.rstrip()))
    assert (set(read.who), read.text) == ({""}, FRAMES.rstrip().split("\n"))


@pytest.mark.parametrize(
    "log",
    [
        # one frame shows no mark
        f'made up: {FRAMES.split(chr(10))[1]}\nand so on\nand more',
        # a source that looks like one
        '    print("""  File "/w/a.py", line 3, in f""")\n    print(x)',
        # what Windows calls its directories
        r"C:\venv\Lib\site-packages\torch\_dynamo\eval_frame.py",
        "x &lt; y and \u201cquoted\u201d",
        "  a\n  b\n  c",
    ],
)  # fmt: skip
def test_what_is_left_as_it_is(log: str) -> None:
    assert lines.plain(log) == log


TOLD = """\
The generator fails so:

```
{}
AssertionError: it is made up
```
"""


@pytest.mark.parametrize(
    "stack",
    [
        "torch/_dynamo/made_up.py ... compile_it\n  -> torch/_inductor/made_up.py ... lower_it\n  ...\n  raise AssertionError(x)",
        "1. /w/a.py:3 in main\n2. site-packages/torch/_inductor/made_up.py:4 in lower_it",
        "at main (w/a.py:3)\nat lower_it (torch/_inductor/made_up.py:4)",
        "- `w/a.py:3` \u2192 `main`\n- `torch/_inductor/made_up.py:4` \u2192 `lower_it`",
        "w/a.py, line 3, in main\ntorch/_inductor/made_up.py, line 4, in lower_it",
    ],
)
def test_a_stack_that_is_told(stack: str) -> None:
    assert verdicts(TOLD.format(stack)) == ["suggested"]
    assert verdicts(TOLD.format(stack.replace("torch/_", "made/"))) == []
    # files without an error, and a log
    assert verdicts(TOLD.format(stack).replace("AssertionError: ", "and ")) == []
    assert verdicts(TOLD.format(stack) + "x\n" * 150) == []


def test_frames_of_spyder() -> None:
    path = r"C:\venv\Lib\site-packages\torch\_inductor"
    log = (
        "Traceback (most recent call last):\n\n  Cell In[22], line 1\n    x = f(y)\n\n"
        f"  File {path}\\graph.py:375 in run\n    return super().run(*args)\n\n"
        f"  File {path}\\lowering.py:9 in made_up(x)\n    raise E\n\n{SAID}\n"
    )
    assert verdicts(log) == ["suggested"]
    assert verdicts(log.replace(r"torch\_inductor", "made_up").replace(SAID, "ValueError: x")) == []


def test_a_box_without_its_head() -> None:
    frames = (
        "│ /w/site-packages/torch/_dynamo/symbolic_convert.py │\n│ :501 in step        │\n│   500 │   x │\n│ ❱ 501 │   f(x) │\n"
        "│ /w/site-packages/torch/_inductor/graph.py:7 in run │\n│ ❱ 7 │"
    )
    assert verdicts(f"It fails:\n```\n{frames}\n```\n") == ["possible"]
    assert verdicts(f"It fails:\n```\n{frames.replace('torch/_', 'made/')}\n```\n") == []


MESSAGE = "Error occurred when executing made_up:\n\nbackend='inductor' raised:\n{}\n\nSet TORCH_LOGS=\"+dynamo\" for more information\n"


@pytest.mark.parametrize(
    ("said", "expected"),
    [("AssertionError: made up", ["suggested"]), ("RuntimeError: Cannot find a working triton installation. See there", [])],
)
def test_a_message_without_its_class(said: str, expected: list[str]) -> None:
    assert verdicts(MESSAGE.format(said)) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("CompilationError: at 7:12:\ndef made_up(x):", ["suggested"]),
        ("CompilationError: a program of mine", []),
        ("ConstraintViolationError: Constraints violated (batch)!", ["suggested"]),
    ],
)
def test_classes_that_the_compiler_alone_has(said: str, expected: list[str]) -> None:
    assert verdicts(f"It says:\n```\n{said}\n```\n") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("`torch._dynamo.exc.Unsupported: made up`", ["suggested"]),
        ("**Error:** torch._dynamo.exc.Unsupported: made up", ["suggested"]),
        ("- Exception message: `torch._dynamo.exc.Unsupported: made up`", ["suggested"]),
        ("This mends `torch._dynamo.exc.Unsupported: made up`, I think.", []),
        ("- 75 errors like: Unsupported: made up (example: a.py)", []),
    ],
)
def test_a_message_among_words(line: str, expected: list[str]) -> None:
    assert verdicts(f"I follow the notebook and get\n{line}\n\nPython version: 3.12\n") == expected


def test_a_death_that_is_told_of() -> None:
    dump = 'Fatal Python error: Segmentation fault\n\nStack (most recent call first):\n  File "/w/{}", line 7 in f\n'
    assert verdicts("# Fatal Python error: Segmentation fault\n\n" + dump.format("nccl.py")) == []
    assert verdicts("Fatal Python error: Segmentation fault\n") == []
    assert verdicts("# Fatal Python error: Segmentation fault\n\n" + dump.format("site-packages/torch/_inductor/a.py")) != []
    # a test may compile
    assert verdicts("tests/a.py::test_a Fatal Python error: Segmentation fault\n") == ["possible"]


@pytest.mark.parametrize(
    ("bar", "above"), [("  0%|          | 0/100 [00:00<?, ?it/s]", 0), ("steps:   0%| | 0/9 [02:42<?, ?it/s, loss=0.02]", 300)]
)
def test_a_bar_before_the_header(bar: str, above: int) -> None:
    assert verdicts("it runs\n" * above + bar + LOG) == ["suggested"]
    assert verdicts("it runs\n" * above + bar + EAGER) == []
    # words that end like a header
    assert verdicts(f"{bar}{FRAMES.partition(chr(10))[0]}\nand so on\n") == []


def test_a_compiler_that_cannot_be_imported_where_the_log_ends() -> None:
    frame = '  File "/w/lib/python3.12/site-packages/torch/_inductor/runtime/hints.py", line 46, in {}\n    from triton.made_up import\n'
    assert verdicts(FRAMES.replace(", in made_up", ", in call") + frame.format("f")) == ["possible"]
    assert verdicts(FRAMES + frame.format("<module>")) == []


def test_what_a_test_quotes_of_another_process() -> None:
    quoted = "\n".join(f"E   {line}" for line in LOG.split("\n"))
    assert verdicts(quoted) == ["suggested"]
    assert verdicts(quoted.partition("\n")[2]) == ["suggested"]
    assert verdicts("\n".join(f"E   {line}" for line in EAGER.split("\n"))) == []


def test_a_cell_of_a_table() -> None:
    said = "Error: accessing tensor output of CUDAGraphs that has been overwritten by a later made-up run."
    frames = r' Stack trace: File "/w/model.py", line 7, in forward\n    return a + b\nand so on.'
    assert verdicts(f"<tr>\n      <td>{said}{frames}</td>\n    </tr>\n") == ["possible"]
    assert verdicts(f"<ul>\n<li><code>{said}</code></li>\n</ul>\n") == ["possible"]
    assert verdicts(f"<tr>\n<td>2 times</td>\n<td>we saw {said}</td>\n</tr>\n") == []


def test_what_traces_a_compiled_function() -> None:
    log = """\
RuntimeError                              Traceback (most recent call last)
[<ipython-input-7-0a1b>](https://localhost:8080/#) in <cell line: 2>()
      1 # made up
----> 2 trace(model, x)

3 frames
[/w/dist-packages/torch/_dynamo/eval_frame.py](https://localhost:8080/#) in _fn(*args, **kwargs)
    469                 if config.made_up:
--> 470                     raise RuntimeError(

RuntimeError: Detected that you are using FX to {} a dynamo-optimized function. This is made up.
"""
    assert verdicts(log.format("symbolically trace")) == ["suggested"]
    assert verdicts(log.format("torch.jit.trace")) == ["suggested"]
    assert verdicts(log.replace("_dynamo/eval_frame", "jit/_trace").replace("Detected that you are using FX", "You use")) == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("RuntimeError: We found a fake tensor in the exported program that is made up.", ["suggested"]),
        ("ValueError: Constraints violated (made_up)! For more information, look it up.", ["suggested"]),
        ("RuntimeError: static input data pointer changed.", ["suggested"]),
        ("RuntimeError: We found a made-up tensor in the exported program.", []),
        ("AssertionError: 'Constraints violated (' not found in 'nothing'", []),
    ],
)
def test_what_the_compiler_says_in_classes_of_others(said: str, expected: list[str]) -> None:
    assert verdicts(f"How can I export it?\nI got this error:\n{said}\n\nIt worked before.\n") == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("It breaks", ["possible"]),
        ("OOM with a made-up model", []),
        ("made.up.OutOfMemoryError when I serve it", []),
        ("the GPU is out of memory while it compiles", []),
        ("OOM shmem issues of a made-up kernel", ["possible"]),
        ("shared memory OOM of a made-up kernel", ["possible"]),
        ("If you are running out of memory, do less", ["possible"]),
    ],
)
def test_words_around_a_traceback_that_is_cut_off(title: str, expected: list[str]) -> None:
    assert verdicts(f"# {title}\n\n```\n{FRAMES}```\n") == expected
    # the traceback itself tells more
    assert verdicts(f"# {title}\n\n```\n{LOG}\n```\n") == ["suggested"]
    # a log of many other things
    assert verdicts(f"# {title}\n" + "it runs\n" * 300 + FRAMES) == ["possible"]


@pytest.mark.parametrize("mark", ["", "[rank0]: "])
def test_frames_without_their_blanks(mark: str) -> None:
    marked = LOG.replace("    return lowered(x)\n", "    return lowered(x)\n           ^^^^^^^^^^\n")
    flat = "\n".join(f"{mark}{line.strip()}".rstrip() for line in marked.split("\n"))
    assert candidates.rows(flat, CheckoutPaths([])) == candidates.rows(LOG, CheckoutPaths([]))
    # what a frame's source was is not known where another frame, or what was raised, is below it
    bare = "\n".join(line for line in flat.split("\n") if not line.removeprefix(mark).startswith(("main(", "guarded", "return", "^")))
    assert candidates.rows(bare, CheckoutPaths([])) == candidates.rows(LOG, CheckoutPaths([]))


def test_a_program_s_own_words_about_a_file_stay() -> None:
    said = ['File "a.py", line 3, in f', "is wrong"]
    assert lines.read("\n".join(said)).text == said


SECTION = """\
============================= test session starts ==============================
platform linux -- Python 3.12.3, pytest-8.4.1, pluggy-1.6.0

tests/test_a.py F.                                                       [100%]

=================================== FAILURES ===================================
____________________________ TestCompile.test_made_up __________________________

    def test_made_up(self):
>       f(x)
E       torch._dynamo.exc.Unsupported: it is made up

tests/test_a.py:3: Unsupported
=========================== short test summary info ============================
FAILED tests/test_a.py::TestCompile::test_made_up - torch._dynamo.exc.Unsupported: it is made up
========================= 1 failed, 1 passed in 1.23s ==========================
"""
SHOWN = f"{'=' * 70}\nERROR: test_a (tests.test_b.TestA.test_a)\n{'-' * 70}\n{LOG}\n\n{'-' * 70}\nRan 1 test in 1.234s\n\nFAILED (errors=1)"


@pytest.mark.parametrize("log", [SECTION, SHOWN])
@pytest.mark.parametrize(
    "mark",
    [
        "[pod/train-0/main] ",
        "[CI/build-and-test]   | ",
        "Mar 02 05:05:05 runner-7 python[4231]: ",
        "0: ",
        "177242790#.123456 ",
        "[test:#] ",
        "     #\t",
        "     #  ",
        "  | ",
        "\t",
        "INFO:root:",
        "2026-03-02 05:05:05,1# - runner - INFO - ",
    ],
)
def test_marks_before_what_runners_of_tests_write(log: str, mark: str) -> None:
    assert candidates.rows(before(mark)(log), CheckoutPaths([])) == candidates.rows(log, CheckoutPaths([]))
    assert candidates.rows(log, CheckoutPaths([]))[0]["verdict"] == "suggested"


@pytest.mark.parametrize("log", [SECTION, SHOWN, LOG])
@pytest.mark.parametrize("end", ["\n\n", "\r\r\n", "\r\n\r\n"])
def test_lines_that_end_more_than_once(log: str, end: str) -> None:
    assert candidates.rows(log.replace("\n", end), CheckoutPaths([])) == candidates.rows(log, CheckoutPaths([]))


def test_marks_before_a_dump() -> None:
    dump = """\
tests/test_a.py::TestCompile::test_made_up Fatal Python error: Segmentation fault

Current thread 0x00007f0000000000 (most recent call first):
  File "/w/site-packages/torch/_inductor/output_code.py", line 7 in __call__
  File "/w/tests/test_a.py", line 3 in test_made_up
"""
    rows = candidates.rows(dump, CheckoutPaths([]))
    assert [(row["verdict"], row["kind"]) for row in rows] == [("possible", "crash")]
    assert candidates.rows(before("[pod/train-0/main] ")(dump), CheckoutPaths([])) == rows


@pytest.mark.parametrize("log", [SECTION, SHOWN, LOG])
@pytest.mark.parametrize("key", ["log", "message", "textPayload"])
def test_a_record_of_json_for_each_line(log: str, key: str) -> None:
    records = [json.dumps({"time": "2026-03-02T05:05:05Z", key: f"{line}\n"}) for line in log.split("\n")]
    assert candidates.rows("\n".join(records), CheckoutPaths([])) == candidates.rows(log, CheckoutPaths([]))
    # what is between them is no record
    assert candidates.rows("\n".join([*records, "{torn", "it ends"]), CheckoutPaths([])) == candidates.rows(log, CheckoutPaths([]))


def test_what_is_no_log_of_records() -> None:
    for log in ('{"a": "b"}\n{"a": "c"}', '{"log": "b"\n{"log": "c"}', '{"log": 1}', '{"log": "a\\nb"}', '{"log": ' + "[" * 100_000 + "}"):
        assert lines.read(log).text == log[: lines.MAX_LINE].split("\n")


@pytest.mark.parametrize("mark", ["3: ", "gpu-node-017: ", "[made-up/test]   | ", "2024-05-01 12:00:0# ", "@made-up/it:test: "])
def test_what_torch_logged_behind_a_mark_ended_nothing(mark: str) -> None:
    logged = before("E0211 10:00:01.000000 77 torch/_inductor/made_up.py:810] [0/0] ")(LOG)
    log = before(mark)(f"{logged}\n{EAGER}")
    assert [row["verdict"] for row in candidates.rows(log, CheckoutPaths(()))] == []
    whose = {who for who, text in zip(lines.read(log).who, lines.read(log).text, strict=True) if text.startswith("  File")}
    assert len(whose) == 2
    assert sum(who.endswith(lines.LOGGED) for who in whose) == 1


def test_ranks_behind_a_mark_stay_apart() -> None:
    log = before("3: ")(before("[rank0]:")(LOG) + "\nmade up\n" + before("[rank1]:")(EAGER))
    assert {who for who in lines.read(log).who if "rank" in who} == {"3:[rank0]:", "3:[rank1]:"}
