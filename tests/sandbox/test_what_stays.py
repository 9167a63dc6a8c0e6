"""What a program leaves behind that is no process, and what else it may find: in each way that an engine can run here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.engine.evidence.verify import Expected, NotRun, verify
from bot.engine.target import Launch
from bot.models.failure import Kind, Phase, Signature
from bot.models.result import Rule
from bot.sandbox.sandbox import Sandbox
from tests.sandbox.ways import SYSTEM_PYTHON, WAYS, Way, prepared

CANARY = "canary-" + "7f3a9c"


@pytest.fixture(params=sorted(WAYS))
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    with prepared(request.param) as one:
        yield one


def test_nothing_stays_in_shared_memory(way: Way) -> None:
    """In none that outlives the processes which made it: the machine's memory would be gone until it starts anew."""
    code = """
import mmap, os, sys
name, folder = sys.argv[1:]
with open(name, "wb") as file:
    file.write(bytes(1 << 20))
print(os.path.getsize(name))
os.makedirs(folder + "/closed/inner")
os.chdir(folder)
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
os.chmod(folder + "/closed", 0)
os.chmod(folder, 0)
"""
    names = [f"/dev/shm/attack-{os.getpid()}-{kind}" for kind in ("file", "folder")]
    ran = way.run(code, argv=names)
    assert (ran.status, ran.text) == (0, f"{1 << 20}\n")
    stayed = [name for name in names if os.path.lexists(name)]
    for name in stayed:
        shutil.rmtree(name, ignore_errors=True) if os.path.isdir(name) else os.unlink(name)
    if "uid" not in ran.layers and "private-tmp" not in ran.layers:
        pytest.skip("a user's own files, where it may have no mounts: SECURITY.md says so")
    assert stayed == []


# Somebody's shared memory and queue, which everybody may use.
SHARING = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
memory, queue = libc.shmget(0, 4096, 0o1666), libc.msgget(0, 0o1666)
place = libc.shmat(memory, None, 0)
ctypes.memmove(place, b"private", 7)
libc.msgsnd(queue, ctypes.create_string_buffer(bytes([1]) + bytes(7) + b"private", 16), 7, 0)
print(memory, queue, flush=True)
sys.stdin.read()
print(ctypes.string_at(place, 7).decode(), libc.msgrcv(queue, ctypes.create_string_buffer(16), 7, 0, 0o4000), flush=True)
libc.shmctl(memory, 0, None), libc.msgctl(queue, 0, None)
"""


def test_no_system_v_ipc_can_be_made(way: Way) -> None:
    """It stays until somebody removes it, and no account's limit counts it. That of others is neither read nor changed nor removed."""
    code = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
memory, queue = map(int, sys.argv[1:])
message = ctypes.create_string_buffer(16)
asked = {
    "shmget": (0, 1 << 20, 0o1600), "msgget": (0, 0o1600), "semget": (0, 1, 0o1600), "mq_open": (b"/attack", 0o102, 0o600, None),
    "shmat": (memory, None, 0), "shmctl": (memory, 0, None), "msgrcv": (queue, message, 8, 0, 0o4000),
    "msgsnd": (queue, ctypes.create_string_buffer(bytes([1]) + bytes(15)), 8, 0o4000), "msgctl": (queue, 0, None),
    "semop": (0, message, 1), "semtimedop": (0, message, 1, None), "semctl": (0, 0, 0), "mq_unlink": (b"/attack",),
}
for name, arguments in asked.items():
    # the C library calls it EACCES where a queue is removed
    if getattr(libc, name)(*arguments) != -1 or ctypes.get_errno() not in (1, 13 if name == "mq_unlink" else 1):
        print("GOT", name)
print("done")
"""
    words = [*WAYS[way.name], SYSTEM_PYTHON, "-c", SHARING]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        ran = way.run(code, argv=other.stdout.readline().split())
        held, _ = other.communicate()
    assert ran.text == "done\n"
    assert held == "private 7\n"


def test_files_are_not_made_without_end(way: Way) -> None:
    """Empty ones take no room, but a file system has only so many."""
    if not os.statvfs("/tmp").f_files:
        pytest.skip("this file system has no limit on files")
    code = """
import os, time
for number in range(200_000):
    open(f"{os.environ['TMPDIR']}/{number}", "w").close()
    time.sleep(0 if number % 100 else 0.02)
print("GOT")
"""
    for _ in range(3):  # somebody else may have removed more than it makes
        ran = way.run(code, set={"_LEAST_FILES": os.statvfs("/tmp").f_favail - 1000})
        if ran.ended:
            break
    assert ran.ended == "disk"
    assert "GOT" not in ran.text
    assert ran.left == ()


def test_however_deep_it_digs_it_is_removed(way: Way) -> None:
    code = """
import os
os.chdir(os.environ["TMPDIR"])
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
open("file", "w").close()
print("done")
"""
    ran = way.run(code)
    assert (ran.status, ran.text, ran.left) == (0, "done\n", ())


def test_whatever_rights_it_gives_its_files_they_are_removed(way: Way) -> None:
    code = """
import os, stat
os.makedirs(os.environ["HOME"] + "/a/b")
for number, mode in enumerate((0, stat.S_ISUID | 0o755, stat.S_ISGID | 0o755, 0o7777)):
    path = os.environ["HOME"] + f"/a/b/{number}"
    open(path, "w").close()
    os.chmod(path, mode)
for below, mode in (("/a/b", stat.S_ISVTX), ("/a", 0), ("", stat.S_ISVTX | stat.S_ISGID)):
    os.chmod(os.environ["HOME"] + below, mode)
print("done")
"""
    ran = way.run(code)
    assert (ran.status, ran.text, ran.left) == (0, "done\n", ())


def test_the_runner_beside_it_is_not_read(way: Way) -> None:
    """Its registration, and the checkouts of other jobs."""
    runner = way.place / "opt" / "github" / "actions-runner"
    checkout = runner / "_work" / "other" / "other" / ".git"
    checkout.mkdir(parents=True)
    compiler = way.place / "opt" / "compiler" / "bin"
    compiler.mkdir(parents=True)
    for path in (runner / ".runner", runner / ".credentials_rsaparams", checkout / "config"):
        path.write_text(CANARY)
    (compiler / "cc").write_text("harmless")
    for folder in (way.place / "opt").rglob("*"):
        way.own(folder)
    code = f"""
for path in {[str(runner / ".credentials_rsaparams"), str(checkout / "config")]!r}:
    try:
        print("GOT", open(path).read())
    except OSError:
        pass
print(open({str(compiler / "cc")!r}).read())
"""
    assert way.run(code, optional=str(way.place / "opt")).text == "harmless\n"


def test_a_run_that_is_made_once_more_finds_nothing_of_the_one_before(tmp_path: Path) -> None:
    """Else a script that passes for everybody could fail in the proof, by what its first attempt wrote."""
    script = tmp_path / "repro.py"
    script.write_text(
        """
import os, signal
from pathlib import Path
places = (Path(__file__).parent, Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]))
if any((place / "planted.py").exists() for place in places):
    raise ValueError("no 7")
if b"boot.py" not in open("/proc/self/cmdline", "rb").read():
    for place in places:
        (place / "planted.py").touch()
    Path(__file__).write_text("raise ValueError('no 7')")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    os.chmod(tmp_path, 0o755)
    (tmp_path / "scratch").mkdir()
    launch = Launch(sys.executable, tmp_path, dict(os.environ), box=Sandbox(tmp_path / "scratch", sys.executable))
    expected = Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("ValueError",), message="no N")
    # the second attempt is killed as the first one was: had it found anything, it would have ended by the error
    with pytest.raises(NotRun, match="twice"):
        verify(launch, script, Expected(expected, Rule(), 100.0), 1)
