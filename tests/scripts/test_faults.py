"""The fault suite's own parts: moments, whose process is which, what is judged how. Nothing here runs torch."""

import errno
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from faultlib import processes, programs, report
from faultlib.catalog import FAULTS
from faultlib.judge import BAD, GOOD, NOTHING, Judgment, Reference, judge
from faultlib.live import Live, Moment
from faultlib.runs import Ran, Seen, Setting, Timeline, fails_alone, mount

faults = importlib.import_module("faultlib.__main__")
REPRO = "# accuracy in run: accuracy\n# failed in 3 of 3 fresh processes\nimport torch\nx = 1\n"
RESULT = {
    "status": "minimized",
    "ended_by": "fixed_point",
    "reason": None,
    "reduction": {"ops_after": 1},
    "verification": {"runs": 3, "same": 3, "eager": "passes"},
    "files": {"repro": "repro.py"},
}
ERROR = {"status": "error", "reason": "the disk is full", "verification": {"same": 0}, "files": {"repro": None}}
REFERENCE = Reference("import torch\nx = 1", 1)
DONE = Ran(0, 33.0, 30.0, "minimized", "", RESULT, REPRO, True, False, (), ("SIGKILL to worker",))
FAILED = Ran(1, 33.0, 30.0, "error", "", ERROR, None, False, False, (), ("the disk is full",))
KILLED = Ran(-9, 13.0, 10.0, "", "", ERROR, None, False, False, (), ("SIGKILL to engine",))
RESUMED = replace(DONE, hits=())
LONGER = "import torch\nx = 1\ny = 1\n"


def judged(fault, *runs, cut=False):
    seen = Seen(fault, 0, programs.ACCURACY, Moment("search", 1.0), runs, cut)
    return judge(seen, FAULTS[fault], REFERENCE, 100.0)


def with_status(status, exit_status, **changed):
    return replace(DONE, status=exit_status, result={**RESULT, "status": status, **changed})


@pytest.mark.parametrize(
    ("outcome", "fault", "runs"),
    [
        ("same", "kill-worker", [DONE]),
        ("honest", "fill-disk", [FAILED]),
        ("honest, resumed", "fill-disk", [FAILED, RESUMED]),
        ("resumed", "kill-engine", [KILLED, RESUMED]),
        ("resumed", "kill-engine-twice", [KILLED, KILLED, RESUMED]),
        ("resumed", "kill-engine", [replace(KILLED, result=None), RESUMED]),
        ("resumed", "end-engine", [replace(KILLED, status=-15, result=None), RESUMED]),
        ("CRASH", "end-engine", [replace(KILLED, status=-15, result=None, err="[ 0.0 s] a Python script"), RESUMED]),
        ("CRASH", "end-engine", [replace(KILLED, status=-15), RESUMED]),
        ("CRASH", "kill-worker", [replace(KILLED, status=-15, result=None), RESUMED]),
        ("missed", "kill-worker", [replace(DONE, hits=())]),
        ("missed", "kill-worker", []),
        ("STUCK", "fill-disk", [FAILED, FAILED]),
        ("OTHER", "kill-worker", [replace(DONE, repro=LONGER)]),
        ("LOST", "kill-engine", [replace(KILLED, repro=REPRO, fails_alone=True), replace(RESUMED, repro=LONGER)]),
        ("LOST", "kill-engine", [replace(KILLED, repro=REPRO, fails_alone=True), replace(FAILED, hits=())]),
        ("LOST", "kill-worker", [replace(FAILED, lost_repro=True)]),
        ("CRASH", "kill-worker", [replace(FAILED, err="[ 1.0 s] x\nTraceback (most recent call last):\n  File\nKeyError: 1")]),
        ("CRASH", "kill-worker", [replace(FAILED, out="error: torch-minify itself failed: KeyError: 1")]),
        ("CRASH", "kill-worker", [replace(FAILED, status=-11)]),
        ("LEFT", "kill-worker", [replace(DONE, left=("sleep 600",))]),
        ("LEFT", "kill-engine", [replace(KILLED, left=("python boot.py server",)), RESUMED]),
        ("LATE", "stop-worker", [replace(DONE, own=111.0)]),
        ("same", "stop-worker", [replace(DONE, own=109.0, seconds=140.0)]),
        ("LATE", "stop-worker", [replace(DONE, status=None)]),
        ("FALSE", "kill-worker", [replace(DONE, result="Expecting value")]),
        ("FALSE", "kill-engine", [replace(KILLED, result="Expecting value"), RESUMED]),
        ("FALSE", "kill-worker", [replace(DONE, result=None)]),
        ("FALSE", "kill-worker", [replace(DONE, status=3)]),
        ("FALSE", "kill-worker", [replace(FAILED, status=0)]),
        ("FALSE", "kill-worker", [replace(DONE, repro=None)]),
        ("FALSE", "kill-worker", [with_status("minimized", 0, verification={"same": 2, "eager": "passes"})]),
        ("FALSE", "kill-worker", [with_status("minimized", 0, verification={"same": 3, "eager": "fails"})]),
        ("FALSE", "kill-worker", [with_status("minimized", 0, files={"repro": None})]),
        ("FALSE", "kill-worker", [with_status("not_reproduced", 4)]),
        ("FALSE", "kill-worker", [with_status("flaky", 5)]),
        ("honest", "stop-proof", [with_status("flaky", 5)]),
        ("honest", "stop-capture", [with_status("not_reproduced", 4, reason_code="fails_in_eager")]),
        ("FALSE", "stop-capture", [with_status("not_reproduced", 4, reason_code="passes")]),
        ("FALSE", "kill-capture", [with_status("not_reproduced", 4, reason_code="fails_in_eager")]),
        ("honest", "kill-worker", [with_status("reproduced", 3)]),
    ],
)
def test_what_is_judged_how(outcome, fault, runs):
    assert judged(fault, *runs).outcome == outcome
    assert outcome in GOOD + NOTHING + BAD


def test_a_repro_that_does_not_fail_alone_is_false_wherever_it_lies():
    assert judged("kill-worker", replace(DONE, fails_alone=False)).outcome == "FALSE"
    assert judged("fill-disk", replace(FAILED, repro=REPRO)).outcome == "FALSE"
    assert judged("fill-disk", replace(FAILED, repro=REPRO, fails_alone=True)).outcome == "honest"


def test_a_repro_is_run_alone_once(tmp_path):
    setting = Setting(sys.executable, tmp_path, 10.0, 10.0, proven=frozenset({"known"}))
    ran = tmp_path / "ran"
    fails = f"# 1 of 3\nopen({str(ran)!r}, 'a').write('x')\nraise KeyError('of this')"
    assert fails_alone(setting, fails, "KeyError: 'of this'")
    assert fails_alone(setting, fails.replace("1 of", "3 of"), "KeyError: 'of this'")
    assert ran.read_text() == "x"
    assert fails_alone(setting, "# 3 of 3\nknown", "whatever")
    assert not fails_alone(setting, "import os\nprint(os.listdir())", "repro.py")
    assert not fails_alone(setting, "raise KeyError('another')", "of this")
    assert [path.name for path in tmp_path.iterdir()] == ["ran"]


def test_what_had_no_time_says_nothing():
    assert judged("kill-worker", replace(DONE, status=None), cut=True) == Judgment("cut")


def test_a_repro_is_compared_without_the_lines_in_front():
    assert programs.ACCURACY.key(REPRO) == REFERENCE.key
    assert programs.THREE.key("# one\ndef f(): ...\n\n\nclass Repro(M):\n    pass\n") == "class Repro(M):\n    pass"


def test_a_program_is_on_a_gpu_if_that_is_asked():
    assert programs.THREE.on("cpu") is programs.THREE
    for program in (*programs.USUAL, programs.HANGING, programs.spoiling("cwd", 3)):
        text = program.on("cuda").text
        assert text.startswith('\nimport torch\n\ntorch.set_default_device("cuda")\n')
        assert "config.cpp" not in text
        compile(text, program.name, "exec")
    assert "triton.inject_relu_bug" in programs.ACCURACY.on("cuda").text


def test_moments_are_drawn_where_a_process_of_the_sort_lives():
    ticks = [(Moment("start", n / 10), frozenset({"helper"})) for n in range(5)]
    ticks += [(Moment("capture", n / 10), frozenset({"capture", "server"})) for n in range(50)]
    ticks += [(Moment("proof", n / 10), frozenset({"proof", "server"})) for n in range(5)]
    timeline = Timeline(tuple(ticks))
    rng = random.Random(0)
    drawn = [timeline.draw((), number, rng) for number in range(60)]
    phases = [moment.phase for moment in drawn]
    assert phases[1::2] == ["start", "capture", "proof"] * 10
    assert phases[::2].count("capture") > 15, "what is not drawn by phase is drawn from all the time there is"
    assert {timeline.draw(("proof",), number, rng).phase for number in range(10)} == {"proof"}
    assert {timeline.draw(("server",), number, rng).phase for number in range(1, 10)} == {"capture", "proof"}
    assert {timeline.draw(("server",), number, rng, ("proof",)).phase for number in range(10)} == {"proof"}
    assert timeline.draw(("worker",), 0, rng) is None
    assert timeline.draw((), 0, rng, ("evidence",)) is None
    assert timeline.draw((), 4, random.Random(3)) == timeline.draw((), 4, random.Random(3))


@pytest.mark.parametrize(
    ("said", "above", "role"),
    [
        ("python /x/bot/inside/boot.py server", None, "server"),
        ("python /x/bot/inside/boot.py server", "server", "worker"),
        ("python /x/bot/inside/boot.py capture /o/order.json", None, "capture"),
        ("python /x/bot/inside/boot.py control /p/program.py", None, "capture"),
        ("python /x/bot/inside/boot.py control --fp64 /t/1/repro.py", None, "proof"),
        ("python /t/1/repro.py", None, "proof"),
        ("cc1plus main.cpp", "proof", "proof"),
        ("python -c import json", None, "helper"),
    ],
)
def test_what_a_process_does(said, above, role):
    assert processes.role_of(said, above) == role


def test_processes_are_found_below_another_and_ended():
    """What lost its parent, in a session of its own, as well."""
    code = """
import os, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from faultlib import processes
processes.adopt_orphans()
subprocess.run([sys.executable, "-c", "import subprocess; subprocess.Popen(['sleep', '321'], start_new_session=True)"])
print(processes.left_after(0.2), flush=True)
processes.end_all()
print(processes.left_after(5), flush=True)
"""
    scripts = Path(faults.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code, str(scripts)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["['sleep 321']", "[]"]


def live(tmp_path, words, seconds=30.0):
    said = tmp_path / "said.txt"
    said.touch()
    child = subprocess.Popen(words, start_new_session=True)
    return Live(child, said, tmp_path, tmp_path / "out", time.monotonic() + seconds, random.Random(0))


def test_a_run_is_struck_in_its_phase(tmp_path):
    code = """
import os, sys, time
file = open(sys.argv[1], "w", buffering=1)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
for word in ("running x", "looking for the smallest form"):
    time.sleep(0.3)
    file.write(f"[   0.1 s] {word}\\n")
time.sleep(30)
"""
    one = live(tmp_path, [sys.executable, "-c", code, str(tmp_path / "said.txt"), str(tmp_path / "go")])
    try:
        assert one.now.phase == "start"
        (tmp_path / "go").touch()
        one.wait_for(Moment("search", 0.2))
        assert one.now.phase == "search"
        assert 0.2 <= one.now.seconds < 5
        FAULTS["kill-engine"].do(one)
        assert one.engine.wait(10) == -signal.SIGKILL
        assert len(one.hits) == 1
        assert one.hits[0].startswith("SIGKILL to engine ")
        assert one.hits[0].endswith("into search")
    finally:
        one.engine.kill()
        one.engine.wait()


def test_a_moment_that_never_comes_ends_with_the_run(tmp_path):
    one = live(tmp_path, [sys.executable, "-c", ""])
    one.wait_for(Moment("proof", 0.0))
    for name in ("kill-worker", "kill-engine", "out-of-memory", "limit-memory"):
        FAULTS[name].do(one)
    assert one.engine.wait(10) == 0
    assert one.hits == []


def test_a_repro_that_was_there_is_remembered(tmp_path):
    one = live(tmp_path, [sys.executable, "-c", "import time; time.sleep(30)"])
    try:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "repro.py").touch()
        assert one.goes_on()
        (tmp_path / "out" / "repro.py").unlink()
        assert one.goes_on()
        assert one.had_repro
    finally:
        one.engine.kill()
        one.engine.wait()


def test_nothing_can_be_written(tmp_path):
    path = tmp_path / "written"
    code = f"""
import os, time
while True:
    time.sleep(0.02)
    try:
        os.write(os.open({str(path)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND), b"x")
    except OSError as error:
        os._exit(error.errno)
"""
    one = live(tmp_path, [sys.executable, "-c", code])
    try:
        while one.goes_on() and not path.exists():
            time.sleep(0.01)
        FAULTS["no-writes"].do(one)
        assert one.engine.wait(10) == errno.EFBIG
        assert "nothing can be written" in one.hits[0]
    finally:
        one.engine.kill()
        one.engine.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_disk_is_filled_to_its_last_byte(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        mount(disk)
    except OSError as error:
        pytest.skip(f"no disk can be mounted here: {error}")
    path = disk / "written"
    code = f"""
import os, time
file = os.open({str(path)!r}, os.O_WRONLY | os.O_CREAT)
while True:
    time.sleep(0.02)
    try:
        os.write(file, bytes(9000))
    except OSError as error:
        os._exit(error.errno)
"""
    try:
        one = live(tmp_path, [sys.executable, "-c", code])
        FAULTS["fill-disk"].do(one)
        assert one.engine.wait(10) == errno.ENOSPC
        assert not (disk / "ballast").exists()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_the_clock_is_set_for_what_is_preloaded(tmp_path):
    """The wall clock alone, and of a process that was started before."""
    library = tmp_path / "clock.so"
    if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, faults.CLOCK, "-ldl"], capture_output=True, check=False).returncode:
        pytest.skip("no C compiler")
    clock = tmp_path / "clock" / "now"
    clock.parent.mkdir()
    clock.write_bytes(bytes(24))
    code = "import time\nbegan, ticked = time.time(), time.monotonic()\nprint('begun', flush=True)\n"
    code += "while time.time() - began < 80_000: time.sleep(0.01)\nprint(time.monotonic() - ticked < 60)"
    env = {**os.environ, "LD_PRELOAD": str(library), "FAULT_CLOCK": str(clock)}
    child = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)
    one = Live(child, tmp_path / "said.txt", tmp_path, tmp_path / "out", time.monotonic() + 30, random.Random(0))
    (tmp_path / "said.txt").touch()
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    FAULTS["clock-forward"].do(one)
    assert one.hits
    assert child.communicate(timeout=20)[0] == "True\n"


@pytest.mark.parametrize("name", programs.SPOILS)
def test_a_program_that_spoils_is_one_and_other_candidates_are_chosen_each_time(name):
    one, other = programs.spoiling(name, 0), programs.spoiling(name, 1)
    compile(one.text, one.name, "exec")
    assert programs.SPOILS[name] in one.text
    assert one.text != other.text
    assert "SPOIL" not in programs.THREE.text + one.text + programs.HANGING.text
    compile(programs.HANGING.text, "hanging", "exec")


@pytest.mark.parametrize(
    ("name", "failing", "passing"),
    [("device", False, True), ("dtype", True, True)],
)
def test_what_fails_by_itself_is_spoilt_only_where_it_would_pass(name, failing, passing):
    def spoils(*operations):
        def seen(salt):
            text, said = programs.spoiling(name, salt).text, []
            torch = SimpleNamespace(**{f"set_default_{name}": said.append}, float64="float64")
            known = {"torch": torch, "inductor": None}
            exec(text[text.index("def refuse_three") : text.index("def chain")], known)
            nodes = [SimpleNamespace(op="call_function", target=f"aten.{one}.default") for one in operations]
            with suppress(RuntimeError):
                known["refuse_three"](SimpleNamespace(nodes=nodes))
            return bool(said)

        return any(seen(salt) for salt in range(20))

    assert spoils("relu", "sin", "tanh", "sigmoid") is failing
    assert spoils("relu", "sin", "tanh") is passing
    assert not spoils("sin", "tanh", "sigmoid")


def test_the_table_counts_and_what_is_wrong_is_the_status(tmp_path, capsys):
    rows = [
        {"fault": "kill-worker", "outcome": "same"},
        {"fault": "kill-worker", "outcome": "LOST"},
        {"fault": "fill-disk", "outcome": "honest"},
    ]
    assert report.table(rows).splitlines() == [
        "fault        same  honest  LOST",
        "kill-worker     1             1",
        "fill-disk               1      ",
        "all             1       1     1",
    ]
    (tmp_path / "a.json").write_text(json.dumps({"rows": rows[:1]}))
    (tmp_path / "b.json").write_text(json.dumps({"rows": rows[1:]}))
    assert faults.main(["--read", str(tmp_path / "a.json")]) == 0
    assert faults.main(["--read", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 1
    assert "3 runs, 1 of them wrong" in capsys.readouterr().out


def test_names_are_listed_and_others_refused(capsys):
    assert faults.main(["--list", "--only", "clock-*", "kill-worker"]) == 0
    assert capsys.readouterr().out.split() == ["kill-worker", "clock-forward", "clock-back"]
    with pytest.raises(SystemExit):
        faults.main(["--only", "kill-nobody"])
