"""What stands before the lines of a log."""

from __future__ import annotations

import pytest

from bot.action.ci import lines, python_words

STAMP = "2026-11-03T09:14:07.1234567Z "


@pytest.mark.parametrize(
    ("line", "text", "who"),
    [
        (f"\ufeff{STAMP}x", "x", ""),
        (f"{STAMP}  File", "  File", ""),
        (f"gpu tests\tRun tests\t{STAMP}x", "x", ""),
        ("2026-11-03T09:14:07.123456Z 01O x", "x", ""),
        ("2026-11-03T09:14:07.123456Z 01O   File", "  File", ""),
        ("2026-11-03T09:14:07.123456Z 01E", "", ""),
        ("2026-11-03T09:14:07.123456Z 01O+x", "x", ""),
        ("2026-11-03T09:14:07+01:00 x", "x", ""),
        ("[2026-11-03T09:14:07Z] x", "x", ""),
        ("[2026-11-03T09:14:07Z]", "", ""),
        ("[2026-11-03 09:14:07] x", "x", ""),
        ("  | [2026-11-03T09:14:07Z] ERROR 11-03 09:14:07 [core.py:708]   File", "  File", "ERROR"),
        ("[2026-11-03T09:14:07.123Z] [GPU tests (a, 1)]   File", "  File", ""),
        ("[2026-11-03T09:14:07.123Z] [gw0] [ 10%] FAILED a", "[gw0] [ 10%] FAILED a", ""),
        ("[2026-11-03T09:14:07Z] [test] x", "[test] x", ""),
        ("\x1b_bk;t=1762161247123\x07x", "x", ""),
        ("_bk;t=1762161247123x", "x", ""),
        ("\x1b[31mx\x1b[0m", "x", ""),
        ("\x1b]8;;https://a.example/b\x1b\\x\x1b]8;;\x1b\\", "x", ""),
        ("[rank0]: Traceback", "Traceback", "[rank0]:"),
        ("[rank0]:   File", "  File", "[rank0]:"),
        ("[rank0]:  File", "  File", "[rank0]:"),
        ("[rank0]:[rank0]:   File", "  File", "[rank0]:[rank0]:"),
        ("[dense_tp] [rank1]:[rank1]:     code", "    code", "[dense_tp] [rank1]:[rank1]:"),
        ("[default3]:  File", "  File", "[default3]:"),
        ("(EngineCore_DP0 pid=7) ERROR 11-03 09:14:07 [core.py:708]   File", "  File", "(EngineCore_DP0 pid=7)ERROR"),
        ("ERROR 05-27 11:47:57 engine.py:389] x", "x", "ERROR"),
        ("(RayWorkerWrapper pid=8, ip=10.0.0.7) x", "x", "(RayWorkerWrapper pid=8, ip=10.0.0.7)"),
        ("(MapWorker(MapBatches(MadeUp)) pid=8, ip=10.0.0.7) x", "x", "(MapWorker(MapBatches(MadeUp)) pid=8, ip=10.0.0.7)"),
        ("(VllmWorker rank=1 pid=9) x", "x", "(VllmWorker rank=1 pid=9)"),
        ("2026-11-03T09:14:07.123456789Z stdout F   File", "  File", ""),
        ("2026-11-03T09:14:07.123456789Z stderr F", "", ""),
        ("09:14:07    File", "  File", ""),
        ("09:14:07", "", ""),
        ('Step #2 - "gpu tests":   File', "  File", ""),
        ("Step #2: x", "x", ""),
        ("[09:14:07] x", "x", ""),
        ("[09:14:07]   File", "  File", ""),
        ("[09:14:07.123]:   File", "  File", ""),
        ("[09:14:07]W:\t [Step 2/3]   File", "  File", ""),
        ("[09:14:07] :\t [Step 2/3]", "", ""),
        ("#12 123.4   File", "  File", ""),
        ("Nov  3 09:14:07   File", "  File", ""),
        ("Nov 13 09:14:07", "", ""),
        ("[2026-11-03 09:14:07 DP0 TP1] x", "x", ""),
        ("server-1  |   File", "  File", "server-1  |"),
        ("model_server_12 | x", "x", "model_server_12 |"),
        ("server-1  |", "", "server-1  |"),
        ("server-1  | [rank1]:   File", "  File", "server-1  |[rank1]:"),
        ("server-1  | 2026-11-03T09:14:07Z   File", "  File", "server-1  |"),
        ("E1103 09:14:07.377000 24573 site-packages/torch/a.py:768]   File", "  File", f"a{lines.LOGGED}"),
        ("[rank1]:E1103 09:14:07.377000 24573 torch/a.py:768] [0/1]   File", "  File", f"[rank1]:a{lines.LOGGED}"),
        ("python3.12-made-up>   File", "  File", ""),
        ("made_up>", "", ""),
        ("(base) me@made-up:~/a/b$ pytest a", "$ pytest a", ""),
        ("(a-3.12) [me@host b]$ pytest a", "$ pytest a", ""),
        ("root@7f1b:/w# pytest a", "$ pytest a", ""),
        ("me@host ~/a (main) $ pytest a", "$ pytest a", ""),
        ("% python a.py", "$ python a.py", ""),
        ("\u276f python a.py", "$ python a.py", ""),
        ("(a-3.10) ~/b/c$ python a.py ", "$ python a.py", ""),
        ("/w/b (main) % python a.py", "$ python a.py", ""),
        ("/w/a.py:5: in f", "/w/a.py:5: in f", ""),
        # not these
        ("me@made-up wrote: it cost 5 $ a day", "me@made-up wrote: it cost 5 $ a day", ""),
        ("    @decorated  # so", "    @decorated  # so", ""),
        (">       f(x)", ">       f(x)", ""),
        (">>> f(x)", ">>> f(x)", ""),
        ("A> x", "A> x", ""),
        (
            "(EngineCore_DP0 pid=7) WARNING 11-03 09:14:07 [core.py:708] x",
            "WARNING 11-03 09:14:07 [core.py:708] x",
            "(EngineCore_DP0 pid=7)",
        ),
        ("[gw0] [ 10%] FAILED a", "[gw0] [ 10%] FAILED a", ""),
        ("[test] x", "[test] x", ""),
        ("ERROR collecting", "ERROR collecting", ""),
        ("a\tb", "a\tb", ""),
        ("W1103 09:14:07.377000 24573 torch/a.py:768] [0/1]   File", "W1103 09:14:07.377000 24573 torch/a.py:768] [0/1]   File", ""),
        ("#12 is the issue", "#12 is the issue", ""),
        ("May 5 is a day", "May 5 is a day", ""),
        ("resnet | 1", "resnet | 1", ""),
        ("| a | b |", "| a | b |", ""),
        ("09:14:07 x", "09:14:07 x", ""),
    ],
)
def test_it_goes(line: str, text: str, who: str) -> None:
    read = lines.read(line)
    assert (read.text, read.who) == ([text], [who])


def test_two_records_on_a_line() -> None:
    record = "(VllmWorker rank=1 pid=9) ERROR 11-03 09:14:07 [a.py:7]"
    assert lines.read(f"{record} x    {record}   File").text == ["x", "  File"]
    assert lines.read(f"{record} x    (VllmWorker rank=1 pid=9) y").text == ["x    (VllmWorker rank=1 pid=9) y"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            r'{"level": "ERROR", "error": "Traceback (most recent call last):\n  File \"C:\\a.py\", line 1\n    f(\'x\')\nValueError: x"}',
            ['{"level": "ERROR", "error": "', python_words.HEADER, r'  File "C:\a.py", line 1', "    f('x')", 'ValueError: x"}'],
        ),
        (
            r"{'message': 'E: a child:\n\nTraceback (most recent call last):\n  F",
            ["{'message': 'E: a child:", "", python_words.HEADER, "  F"],
        ),
        # what a message quotes within a traceback stays there
        (r"ValueError: 'Traceback (most recent call last):\n  F'", [r"ValueError: 'Traceback (most recent call last):\n  F'"]),
        (r'{"a": "b\nc"}', [r'{"a": "b\nc"}']),
    ],
)
def test_records_of_one_line(line: str, text: list[str]) -> None:
    read = lines.read(f"(pid=7) {line}")
    assert (read.text, set(read.who)) == (text, {"(pid=7)"})


PLACE = '  File "/w/site-packages/made_up.py", line 931, in made_up'


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        *((f"x\n{PLACE[:at]}\n{PLACE[at:]}\n    f(x)", ["x", PLACE, "    f(x)"]) for at in (20, 36, 37, 39, 43, 44, 46, 47, 49, 50, 51)),
        (f"{PLACE[:20]}\n{PLACE[20:40]}\n{PLACE[40:]}", [PLACE]),
        (f"    f(x)    {PLACE[2:]}", ["    f(x)", PLACE]),
        (f"from user code:     {PLACE[2:20]}\n{PLACE[20:]}", ["from user code:", PLACE]),
        # a server's logger stands there, and not the source of a frame above
        (f"    ERROR 01-02 [a.py:7] {PLACE}\n    ERROR 01-02 [a.py:7]     f(x)\ny", [PLACE, "    f(x)", "y"]),
        # what ends there
        (PLACE[:20], [PLACE[:20]]),
        (f"{PLACE[:20]}\n    f(x)\n{PLACE}", [PLACE[:20], "    f(x)", PLACE]),
        (f"E       {PLACE[2:]}", [f"E       {PLACE[2:]}"]),
    ],
)
def test_what_a_terminal_broke(log: str, expected: list[str]) -> None:
    assert lines.read(log).text == expected


def test_what_is_only_logged() -> None:
    for mark in ("[5/0_1] torch.made_up: [ERROR]", "torch.made_up: [ERROR]", "E1209 15:28:05.619000 7 torch/made_up.py:9] [5/0]"):
        read = lines.read(f"[2023-12-09 15:28:05,619] {mark}   File" if "torch." in mark else f"{mark}   File")
        assert (read.text, read.who) == (["  File"], [f"made_up{lines.LOGGED}"]), mark
    read = lines.read("[2023-12-09 15:28:05,619] torch.made_up: [WARNING]   File")
    assert read.who == [""]


def test_control_characters_that_are_spelled() -> None:
    assert lines.read("^[[36m(pid=9)^[[0m   File^M\n    ^^^^^M\n").text == ["  File", "    ^^^^", ""]
    assert lines.read("    ^^^^M").text == ["    ^^^^M"]


def test_the_end_of_a_log_and_the_beginning_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINES", 3)
    monkeypatch.setattr(lines, "MAX_LINE", 4)
    assert lines.read("1\n2\n3\n4\r\n555555\r6").text == ["4", "5555", "6"]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("x\n  + run\n  [rank0]:  File\n\n    y\nz", [("x", ""), ("+ run", ""), ("  File", "[rank0]:"), ("", ""), ("  y", ""), ("z", "")]),
        ("    [default1]:x", [("x", "[default1]:")]),
        ("  (Worker_TP0 pid=7) x\n  y", [("x", "(Worker_TP0 pid=7)"), ("y", "")]),
        ("    ERROR 01-02 03:04:05 [a.py:7] x\n    y\nz", [("x", "ERROR"), ("y", ""), ("z", "")]),
        ("  === FAILURES ===\n  x\n y", [("=== FAILURES ===", ""), ("x", ""), (" y", "")]),
        ("  + python -m x\n  y", [("+ python -m x", ""), ("y", "")]),
        ("  ++ A=1 torchrun x\n  y", [("++ A=1 torchrun x", ""), ("y", "")]),
        ("  FAILED a/test_b.py::test_c - x\n    y\nz", [("FAILED a/test_b.py::test_c - x", ""), ("  y", ""), ("z", "")]),
        ("    FAILED [0.93s] a/test_b.py::test_c\n    y", [("FAILED [0.93s] a/test_b.py::test_c", ""), ("y", "")]),
        ("  ERROR a/test_b.py - x\n  y", [("ERROR a/test_b.py - x", ""), ("y", "")]),
        ("  FAILED: a.o\n  y", [("  FAILED: a.o", ""), ("  y", "")]),
        ("  ERROR a.py\n  y", [("  ERROR a.py", ""), ("  y", "")]),
        ("  The following tests failed consistently: ['a']\n  y", [("The following tests failed consistently: ['a']", ""), ("y", "")]),
        ("  FAILED CONSISTENTLY: test/a.py::T::test_b\n  y", [("FAILED CONSISTENTLY: test/a.py::T::test_b", ""), ("y", "")]),
        ("  + where\n  y", [("  + where", ""), ("  y", "")]),
        ("  x\n    y", [("  x", ""), ("    y", "")]),
    ],
)
def test_what_a_script_indents(log: str, expected: list[tuple[str, str]]) -> None:
    read = lines.read(log)
    assert list(zip(read.text, read.who, strict=True)) == expected


def test_the_path_of_a_frame_on_windows() -> None:
    log = '  File "C:\\w\\test_a.py", line 7, in test_b\n    open("C:\\w")\n'
    assert lines.read(log).text[:2] == ['  File "C:/w/test_a.py", line 7, in test_b', '    open("C:\\w")']


def test_what_is_behind_a_mark_is_not_indented_by_what_is_above() -> None:
    record = "(Worker pid=9) ERROR 11-03 09:14:07 [a.py:7]"
    log = f" ERROR 11-03 09:14:06 [a.py:5] made up\n{record}   File\n{record}     source\n"
    assert lines.read(log).text[1:3] == ["  File", "    source"]


def test_what_a_comment_quotes() -> None:
    assert lines.read("It says:\n> a\n>\n>   b\nso.").text == ["It says:", "a", "", "  b", "so."]
    # pytest marks single lines
    marked = "    x = 1\n>       f(x)\n\na.py:3:\n> one\n> two\n"
    assert lines.read(marked).text == marked.split("\n")
