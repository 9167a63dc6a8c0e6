"""Programs that try to get out of the sandbox, in each way that an engine can run here. SECURITY.md has the table."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.sandbox import landlock, seccomp
from tests.sandbox.ways import HERE, WAYS, Way, prepared, running_with

CANARY = "canary-" + "7f3a9c"


@pytest.fixture(params=sorted(WAYS))
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    with prepared(request.param) as one:
        yield one


def test_every_layer_is_on(way: Way) -> None:
    """Else the tests below could pass for another reason, or fail for want of a kernel."""
    if not landlock.abi() or not seccomp.supported():
        pytest.skip("this kernel has no Landlock, or there is no filter for this processor")
    expected = {"no-new-privs", "no-capabilities", "landlock", "seccomp", "rlimits", "no-network"}
    expected |= {"landlock-signals"} if landlock.scopes_signals() else set()
    ran = way.run("print(1)")
    # whether a user may have mounts of their own is the machine's to say; a container's root and an engine may not
    optional = {"private-tmp"} if "user" in way.name else set()
    expected |= {"uid"} if "user" not in way.name else set()
    expected |= {"private-tmp"} if "host-root" in way.name else set()
    assert set(ran.layers) - optional == expected
    assert (ran.status, ran.text, ran.left) == (0, "1\n", ())


def test_no_token_is_in_the_environment(way: Way) -> None:
    env = {
        "GITHUB_TOKEN": CANARY,
        "AWS_SECRET_ACCESS_KEY": CANARY,
        "ACTIONS_RUNTIME_TOKEN": CANARY,
        "SOMETHING": CANARY,
        "CUDA_LOOKS_HARMLESS": "ghp_" + CANARY.replace("-", "") + "0" * 30,
        "TORCH_URL": f"https://x:{CANARY}@example.com/",
        "PYTHON_TOKEN": CANARY,
    }
    ran = way.run("import os; print(dict(os.environ))", env=env)
    assert CANARY not in ran.text
    assert CANARY.replace("-", "") not in ran.text
    assert "HOME" in ran.text


def test_no_process_shows_its_environment_or_memory(way: Way) -> None:
    code = """
import os
for pid in os.listdir("/proc"):
    if not pid.isdigit() or int(pid) == os.getpid():
        continue
    for name in ("environ", "mem", "maps", "fd", "cwd", "root", "task"):
        path = f"/proc/{pid}/{name}"
        try:
            if name in ("cwd", "root"):
                print("GOT", os.readlink(path))
            elif name == "fd":
                for number in os.listdir(path):
                    for attempt in (os.readlink, lambda one: os.open(one, os.O_RDONLY), lambda one: os.open(one, os.O_WRONLY)):
                        try:
                            print("GOT", attempt(path + "/" + number))
                        except OSError:
                            pass
            elif name in ("environ", "maps"):
                data = open(path, "rb").read(4000)
                if data:
                    print("GOT", path, data)
            elif name == "mem":
                os.open(path, os.O_RDWR)
                print("GOT", path)
        except OSError:
            pass
print("done")
"""
    ran = way.run(code, env={"GITHUB_TOKEN": CANARY})
    assert ran.text.strip() == "done"


def test_files_of_others_are_not_read(way: Way) -> None:
    held = way.place / "elsewhere"
    held.mkdir()
    (held / "open.txt").write_text(CANARY)
    os.chmod(held / "open.txt", 0o666)
    secrets = [held / "open.txt"]
    for name in (".ssh/id_rsa", ".netrc", ".docker/config.json", ".cache/huggingface/token", ".config/gh/hosts.yml", "notes.txt"):
        path = way.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CANARY)
        os.chmod(path, 0o644)
        secrets.append(path)
    project = way.place / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "config").write_text(CANARY)
    (project / ".env").write_text(CANARY)
    (project / "data.txt").write_text("harmless")
    code = f"""
import os
for path in {[str(path) for path in (*secrets, project / ".git" / "config", project / ".env", "/etc/shadow", "/etc/sudoers")]!r}:
    for name in (path, os.path.join("/proc/self/root", path.lstrip("/")), os.path.join("/proc/1/root", path.lstrip("/"))):
        try:
            print("GOT", name, open(name).read())
        except OSError:
            pass
print(open({str(project / "data.txt")!r}).read())
"""
    ran = way.run(code, readable=[str(project)])
    assert ran.text.strip() == "harmless"


@pytest.fixture
def listeners(way: Way) -> Iterator[dict[str, object]]:
    """A TCP, a UDP and unix sockets that everybody may talk to; `heard` are those that somebody talked to.

    Where no `/tmp` of its own hides them from a program: as the system's log and the container engine have them.
    """
    heard: list[str] = []
    place = Path(tempfile.mkdtemp(prefix="listeners-", dir="/var/tmp"))
    os.chmod(place, 0o755)
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    path, log = place / "engine.sock", place / "log"
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(path))
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    datagrams.bind(str(log))
    for one in (path, log):
        os.chmod(one, 0o777)
    abstract = socket.socket(socket.AF_UNIX)
    name = f"\0attack-{uuid.uuid4()}"
    abstract.bind(name)
    open_sockets = {"tcp": tcp, "unix": unix, "abstract": abstract}
    unix.listen()
    abstract.listen()

    def wait(kind: str, one: socket.socket) -> None:
        try:
            one.recv(100) if kind in ("udp", "log") else one.accept()
            heard.append(kind)
        except OSError:
            return

    for kind, listener in {**open_sockets, "udp": udp, "log": datagrams}.items():
        threading.Thread(target=wait, args=(kind, listener), daemon=True).start()
    ports = {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
    yield {**ports, "unix": str(path), "log": str(log), "abstract": name, "heard": heard}
    for listener in (*open_sockets.values(), udp, datagrams):
        with_shutdown(listener)
    shutil.rmtree(place)


def with_shutdown(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


TALK = """
import json, socket, sys
where = json.loads(sys.argv[1])
def attempt(what, family, kind, use):
    try:
        with socket.socket(family, kind) as one:
            one.settimeout(2)
            use(one)
            print("GOT", what)
    except OSError as error:
        print("refused", what, error.errno)
S, D = socket.SOCK_STREAM, socket.SOCK_DGRAM
attempt("tcp", socket.AF_INET, S, lambda one: one.connect(("127.0.0.1", where["tcp"])))
attempt("udp", socket.AF_INET, D, lambda one: one.sendto(b"x", ("127.0.0.1", where["udp"])))
attempt("unix", socket.AF_UNIX, S, lambda one: one.connect(where["unix"]))
attempt("abstract", socket.AF_UNIX, S, lambda one: one.connect(where["abstract"]))
attempt("metadata", socket.AF_INET, S, lambda one: one.connect(("169.254.169.254", 80)))
attempt("dns", socket.AF_INET, D, lambda one: one.sendto(b"x", ("192.0.2.1", 53)))
attempt("six", socket.AF_INET6, D, lambda one: one.sendto(b"x", ("2001:db8::1", 53)))
for family in (17, 38, 40, 16, 31):
    attempt(f"family {family}", family, socket.SOCK_RAW, lambda one: None)
# one of a pair, let go of or not, that is to leave the other
for kind in (S, D, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
    for name in ("unix", "log", "abstract"):
        for close in (False, True):
            for use in (lambda one, to: one.connect(to) or one.send(b"x"), lambda one, to: one.sendto(b"x", to)):
                try:
                    one, other = socket.socketpair(socket.AF_UNIX, kind)
                    if close:
                        other.close()
                    use(one, where[name])
                    # of what is not of datagrams the address counts for nothing
                    print(f"GOT {name} by a pair") if kind in (D, socket.SOCK_RAW) or close else None
                except OSError as error:
                    print("refused a pair", error.errno)
"""


def test_nobody_is_talked_to(way: Way, listeners: dict[str, object]) -> None:
    where = {name: listeners[name] for name in ("tcp", "udp", "unix", "log", "abstract")}
    ran = way.run(TALK, argv=[json.dumps(where)])
    time.sleep(0.2)
    got = [line for line in ran.text.splitlines() if not line.startswith("refused")]
    # in a network of its own, where there is no way to anybody, it may send into the void, and list its one device
    assert [line for line in got if line not in ("GOT udp", "GOT family 16")] == [], ran.text
    assert listeners["heard"] == []
    assert "refused unix 13" in ran.text


PACKETS = """
import json, os, socket, sys
where = json.loads(sys.argv[1])
P = socket.SOCK_SEQPACKET
with socket.socket(socket.AF_UNIX, P | socket.SOCK_CLOEXEC) as own, socket.socket(socket.AF_UNIX, P) as other:
    own.bind("\\0" + "named-by-a-driver-%d" % os.getpid())
    own.listen()
    other.connect(own.getsockname())
    print("packets")
for name in ("unix", "abstract", "packets"):
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
            one.connect(where[name])
            print("GOT", name)
    except OSError:
        pass
with open("/proc/self/task/%d/comm" % os.getpid(), "w") as file:
    file.write("cuda")
print("named")
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    try:
        socket.socket(socket.AF_UNIX, kind)
        print("GOT", kind)
    except OSError:
        pass
for pid in os.listdir("/proc"):
    if pid.isdigit() and int(pid) != os.getpid():
        for name in ("mem", "comm", "environ", "oom_score_adj", "coredump_filter", "clear_refs", "attr/current", "uid_map"):
            path = f"/proc/{pid}/{name}"
            try:
                before = open(path, "rb").read(100)
            except OSError:
                before = b"?"
            try:
                with open(path, "wb", buffering=0) as file:
                    file.write(before if before != b"?" else b"1")
                if name not in HARMLESS:
                    print("GOT", path)
            except OSError:
                pass
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"):
    try:
        open(path, "wb", buffering=0)
        print("GOT", path)
    except OSError:
        pass
"""


@pytest.fixture
def listener_for_packets() -> Iterator[str]:
    name = f"\0packets-{uuid.uuid4()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.bind(name)
        one.listen()
        yield name


def test_what_a_gpu_s_driver_needs_leads_to_nobody(way: Way, listeners: dict[str, object], listener_for_packets: str) -> None:
    if "gpu" not in way.name:
        pytest.skip("of a machine with a GPU")
    if not landlock.scopes_signals():
        pytest.skip("this kernel's Landlock does not know abstract sockets")
    where = {"unix": listeners["unix"], "abstract": listeners["abstract"], "packets": listener_for_packets}
    # of the same account: how early the kernel takes it, what its core dump would hold, which pages count as used
    harmless = ("oom_score_adj", "coredump_filter", "clear_refs") if "user" in way.name else ()
    ran = way.run(f"HARMLESS = {harmless!r}\n{PACKETS}", argv=[json.dumps(where)])
    assert ran.text.split() == ["packets", "named"], ran.text


def test_with_the_network_on_it_is_there(way: Way, listeners: dict[str, object]) -> None:
    where = {name: listeners[name] for name in ("tcp", "udp", "unix", "log", "abstract")}
    ran = way.run(TALK, argv=[json.dumps(where)], network=True)
    assert "GOT tcp" in ran.text
    assert "no-network" not in ran.layers


def test_nothing_is_written_outside(way: Way) -> None:
    project = way.place / "project"
    project.mkdir(exist_ok=True)
    way.own(project)
    (project / "kept.txt").write_text("kept")
    way.own(project / "kept.txt")
    targets = [
        project / "new.txt",
        project / "kept.txt",
        project / ".git" / "hooks" / "post-checkout",
        way.home / ".gitconfig",
        way.home / ".cache" / "pip" / "x",
        way.home / ".bashrc",
        way.package / "bot" / "__init__.py",
        Path("/tmp") / f"planted-{uuid.uuid4()}",
        Path("/var/tmp") / f"planted-{uuid.uuid4()}",
        Path("/tmp/torchinductor_root") / "planted.so",
        Path("/usr/lib/python3/dist-packages/planted.pth"),
        Path("/proc/sys/kernel/core_pattern"),
        Path("/etc/ld.so.preload"),
    ]
    code = f"""
import os
for path in {[str(path) for path in targets]!r}:
    for attempt in (
        lambda: os.makedirs(os.path.dirname(path), exist_ok=True),
        lambda: open(path, "a").write("planted"),
        lambda: os.symlink("/etc/passwd", path),
        lambda: os.link("/etc/passwd", path),
        lambda: os.mkfifo(path),
        lambda: os.truncate(path, 0),
        lambda: os.rename(path, path + "2"),
        lambda: os.unlink(path),
        lambda: os.rename(os.environ["TMPDIR"], path),
    ):
        try:
            attempt()
            if attempt.__code__.co_names[-1] != "dirname": print("GOT", path, attempt.__code__.co_names)
        except OSError:
            pass
open(os.environ["TMPDIR"] + "/own", "w").write("x")
open(os.environ["HOME"] + "/own", "w").write("x")
print("done")
"""
    before = {path: path.read_bytes() if path.is_file() else None for path in targets}
    ran = way.run(code, readable=[str(project)], cwd=str(project))
    assert {path: path.read_bytes() if path.is_file() else None for path in targets} == before
    got = [line for line in ran.text.splitlines() if line.startswith("GOT") and "makedirs" not in line]
    if "private-tmp" in ran.layers:  # what it may read stays read-only there
        got = [line for line in got if not line.startswith("GOT /tmp/") or str(project) in line]
    assert not got, ran.text
    assert "done" in ran.text
    assert ran.left == ()


def test_nothing_of_files_outside_is_changed(way: Way) -> None:
    """Neither modes, times and attributes, which Landlock does not know, nor when they were read: a program could count its runs so."""
    with tempfile.TemporaryDirectory(prefix="outside-", dir="/var/tmp") as name:
        place = Path(name)
        os.chmod(way.own(place), 0o755)  # for an account of the program's own
        (place / "data.txt").write_text("read")
        os.utime(way.own(place / "data.txt"), (1, 1))
        before = place.stat().st_mode, (place / "data.txt").stat()
        code = f"""
import os
for path in ({name!r}, {name!r} + "/data.txt"):
    for attempt in (lambda: os.chmod(path, 0), lambda: os.utime(path), lambda: os.setxattr(path, "user.a", b"1")):
        try:
            attempt()
            print("GOT", attempt.__code__.co_names)
        except OSError:
            pass
print(open({name!r} + "/data.txt").read())
"""
        ran = way.run(code, readable=[name], cwd=name)
        folder = place.stat().st_mode
        os.chmod(place, 0o755)
        found = folder, (place / "data.txt").stat()
    if "uid" not in ran.layers and "private-tmp" not in ran.layers:
        pytest.skip("a user's own files, where it may have no mounts: SECURITY.md says so")
    assert ran.text == "read\n"
    (folder, file), (folder_before, file_before) = found, before
    assert (folder, file.st_mode, file.st_mtime) == (folder_before, file_before.st_mode, file_before.st_mtime)
    assert file.st_atime == file_before.st_atime or "private-tmp" not in ran.layers


def test_what_is_written_to_tmp_is_its_own(way: Way) -> None:
    project, name = way.place / "project", f"/tmp/planted-{uuid.uuid4()}"
    project.mkdir()
    (project / "data.txt").write_text("read")
    way.own(project)
    way.own(project / "data.txt")
    code = f"""
import os, tempfile
print(open({str(project / "data.txt")!r}).read(), sorted(os.listdir({str(project)!r})), os.path.exists({str(way.home)!r}))
place = tempfile.mkdtemp(dir="/tmp")
open(place + "/a", "w").write("a")
os.mkdir({name!r})
os.rename(place + "/a", {name!r} + "/b")
print(open({name!r} + "/b").read())
data = {str(project / "data.txt")!r}
for attempt in (lambda: open(data, "w"), lambda: os.rmdir("/tmp"), lambda: os.unlink(data)):
    try:
        attempt()
        print("GOT")
    except OSError:
        pass
"""
    ran = way.run(code, readable=[str(project)])
    if "private-tmp" not in ran.layers:
        assert ran.status != 0
        assert not Path(name).exists()
        return
    assert (ran.status, ran.text, ran.left) == (0, "read ['data.txt'] False\na\n", ())
    assert not Path(name).exists()
    assert way.run(f"import os; print(os.path.exists({name!r}))").text == "False\n"


def test_the_disk_is_not_filled(way: Way) -> None:
    code = """
import os, time
with open(os.environ["TMPDIR"] + "/large", "wb") as file:
    os.unlink(file.name)
    for _ in range(3000):
        file.write(bytes(1 << 20)); file.flush(); time.sleep(0.002)
print("GOT")
"""
    for _ in range(5):
        least = free("/tmp") - (768 << 20)  # others of this machine write as well
        ran = way.run(code, set={"_LEAST_FREE": least})
        if ran.ended or free("/tmp") < least:
            break
        # others of this machine have made room meanwhile
    assert ran.ended == "disk", (ran, least, free("/tmp"))
    assert "GOT" not in ran.text


def test_no_room_is_taken_before_it_is_written_to(way: Way) -> None:
    """All that there is would be gone at once, for as long as nobody looks. Who asks the C library for room gets it: it writes, then."""
    if "gpu" in way.name:
        pytest.skip("NCCL has its shared memory so: SECURITY.md says so")
    code = """
import ctypes, errno, fcntl, os, struct
libc = ctypes.CDLL(None, use_errno=True)
for place in (os.environ["TMPDIR"], "/dev/shm"):
    fd = os.open(place + f"/large-{os.getpid()}", os.O_RDWR | os.O_CREAT)
    os.unlink(place + f"/large-{os.getpid()}")
    for mode in (0, 1, 1 << 4, 1 << 4 | 1, 1 << 6):
        got = libc.fallocate(fd, mode, ctypes.c_long(0), ctypes.c_long(8 << 20))
        if os.fstat(fd).st_blocks or got != -1 or ctypes.get_errno() != errno.EOPNOTSUPP:
            print("GOT", place, mode, got)
    for number in (40, 42, 57):
        try:
            fcntl.ioctl(fd, 0x40305800 | number, struct.pack("hhqqiI4i", 0, 0, 0, 8 << 20, 0, 0, 0, 0, 0, 0))
            print("GOT", place, "ioctl", number)
        except OSError as error:
            if os.fstat(fd).st_blocks or error.errno != errno.EPERM:
                print("GOT", place, "ioctl", number, error)
    os.posix_fallocate(fd, 0, 1 << 20)
    print(os.fstat(fd).st_size, os.fstat(fd).st_blocks >= 2048, libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(4096)))
"""
    assert way.run(code).text == f"{1 << 20} True 0\n" * 2


def free(path: str) -> int:
    facts = os.statvfs(path)
    return facts.f_bavail * facts.f_frsize


def test_processes_are_limited(way: Way) -> None:
    mark = f"mark-{uuid.uuid4()}"
    code = """
import os, time
count = 0
try:
    while count < 3000:
        if os.fork() == 0:
            time.sleep(100)
        count += 1
    print("GOT", count)
except OSError as error:
    print("refused after", count, flush=True)
"""
    ran = way.run(code, argv=[mark], set={"_MOST_PROCESSES": 40})
    assert "GOT" not in ran.text
    assert running_with(mark) == []


def test_others_keep_their_turn_and_their_timers(way: Way) -> None:
    """The kernel counts the signals that wait, and the timers, of all processes of an account; some machines let users run first."""
    code = """
import ctypes, resource, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
queued, libc = 0, ctypes.CDLL(None)
while queued < 100_000 and libc.sigqueue(libc.getpid(), 40, None) == 0:
    queued += 1
print(queued, *resource.getrlimit(resource.RLIMIT_RTPRIO), *resource.getrlimit(resource.RLIMIT_NICE))
"""
    queued, *turn = map(int, way.run(code).text.split())
    assert 0 < queued <= 4096
    assert turn == [0] * 4


def test_memory_is_limited_and_the_kernel_takes_the_program_first(way: Way) -> None:
    code = """
import mmap, resource
limit, hard = resource.getrlimit(resource.RLIMIT_AS)
print(open("/proc/self/oom_score_adj").read().strip(), limit == hard, limit)
try:
    mmap.mmap(-1, limit + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    print("GOT")
except OSError:
    print("refused")
"""
    ran = way.run(code)
    score, same, limit, said = ran.text.split()
    assert (score, same, said) == ("1000", "True", "refused")
    # a GPU's driver reserves addresses beyond any limit
    assert int(limit) == -1 if "gpu" in way.name else 0 < int(limit) < 1 << 50


def test_no_core_is_dumped(way: Way) -> None:
    """What a machine starts for a dump runs as root, and what that keeps stays: no limit but this one byte is heeded there."""
    code = """
import ctypes, os, resource
core, libc = resource.RLIMIT_CORE, ctypes.CDLL(None)
print(resource.getrlimit(core))
resource.setrlimit(core, (0, 1))
resource.prlimit(0, core, (0, 0))
number = {"x86_64": 160, "aarch64": 164}[os.uname().machine]
print(libc.syscall(ctypes.c_long(number), ctypes.c_long(core), (ctypes.c_uint64 * 2)(0, 0)))
print(resource.getrlimit(core))
os.chdir(os.environ["HOME"])
if os.fork() == 0:
    os.abort()
print(os.wait()[1], os.listdir())
"""
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("there is no other limit to be had than none")
    ran = way.run(code)
    assert ran.text.splitlines() == ["(1, 1)", "0", "(1, 1)", f"{int(signal.SIGABRT)} []"]


LEAVE = """
import os, subprocess, sys, time
def leave(again):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if again: leave(again - 1)
            stay = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(300)"
            os.execv(sys.executable, [sys.executable, "-I", "-c", stay, sys.argv[1]])
        os._exit(0)
leave(2)
subprocess.Popen(["nohup", sys.executable, "-c", "import time; time.sleep(300)", sys.argv[1]], start_new_session=True)
time.sleep(1)
print("left", flush=True)
"""


def test_nothing_outlives_the_program(way: Way) -> None:
    mark = f"mark-{uuid.uuid4()}"
    ran = way.run(LEAVE, argv=[mark])
    assert "left" in ran.text
    assert running_with(mark) == []


# Processes that each end as soon as they have started the next, which shares their memory: whoever is found has gone.
CHAINS = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static char stacks[200][64][4096];
static int at[200];
static time_t end;
static int hop(void *which) {
  for (long i = (long)which; time(0) < end;)
    if (clone(hop, stacks[i][at[i] = (at[i] + 1) & 63] + 4000, CLONE_VM, which) > 0)
      break;
  return syscall(SYS_exit, 0);
}
int main() {
  end = time(0) + 25;
  for (long i = 0; i < 200; i++)
    clone(hop, stacks[i][0] + 4000, CLONE_VM, (void *)i);
}
"""


def test_nothing_that_flees_outlives_the_program(way: Way) -> None:
    """Nor keeps its supervisor so busy that this one is ended itself."""
    if shutil.which("gcc") is None or "user" in way.name:
        pytest.skip("needs gcc, needs another account: without one, the two tests below, with fewer of them")
    mark = f"mark-{uuid.uuid4()}"
    code = f"""
import contextlib, os, subprocess, sys
os.chdir(os.environ["TMPDIR"])
open("chains.c", "w").write({CHAINS!r})
subprocess.run(["gcc", "-O1", "-o", "chains", "chains.c"], check=True)
subprocess.Popen(["./chains", sys.argv[1]])
with contextlib.suppress(BlockingIOError):  # the first may have taken every process that there may be
    subprocess.Popen(["./chains", sys.argv[1]])
"""
    assert way.run(code, argv=[mark], limit=3.0).text == ""
    assert running_with(mark) == []


# Four chains of processes, each in a session of its own, that end as soon as they have started the next, until nobody else has the pipe
# open any more. Whoever lives has. Before that they try to be rid of whoever could end them.
FLEE = """
import os, signal, sys, time
def attempts(pid, above):
    yield lambda: os.kill(pid, 9)
    yield lambda: signal.pidfd_send_signal(os.pidfd_open(pid), 19)
    if pid != above:  # that one the kernel may be made to take early when memory ends, and then the other acts
        for name in ("oom_score_adj", "mem", "comm"):
            yield lambda: os.open(f"/proc/{pid}/{name}", os.O_WRONLY)
for pid in (int(each) for each in os.listdir("/proc") if each.isdigit() and int(each) != os.getpid()):
    try:
        beside = os.getppid() in (pid, int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1]))
    except OSError:
        continue
    for number, attempt in enumerate(attempts(pid, os.getppid()) if beside else ()):
        try:
            attempt()
            print("GOT", number)
        except OSError:
            pass
pipe = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
def wanted():
    try:
        return os.read(pipe, 1)
    except BlockingIOError:
        return True
for _ in range(4):
    if os.fork() == 0:
        while wanted():
            if os.fork():
                os._exit(0)
            os.setsid()
            time.sleep(0.005)
        os._exit(0)
print("fled", flush=True)
"""


class Line:
    """A named pipe, by which to know whether anybody who has opened it still lives, however short."""

    def __init__(self, way: Way) -> None:
        if "user" in way.name and not landlock.scopes_signals():
            pytest.skip("needs another account, or Linux 6.12: SECURITY.md says so")
        self.place = way.place / "line"
        self.place.mkdir()
        os.mkfifo(self.place / "pipe", 0o644)
        self._first = os.open(self.place / "pipe", os.O_RDWR)
        self._end = os.open(self.place / "pipe", os.O_WRONLY)

    def is_held(self) -> bool:
        """Whether anybody but us has it open after a moment to go; asked once, at the end."""
        os.close(self._first)
        asked = select.poll()
        asked.register(self._end, 0)
        held = not asked.poll(2000)
        os.close(self._end)
        return held


def test_what_is_never_found_ends_with_the_program(way: Way) -> None:
    """Its supervisor finds nobody here: what ends them must not have to."""
    line = Line(way)
    supervisor = way.package / "bot" / "sandbox" / "supervisor.py"
    seeing = supervisor.read_text()
    supervisor.write_text(seeing.replace("_ROUNDS = 200\n", "_ROUNDS = 0\n"))
    assert supervisor.read_text() != seeing
    ran = way.run(FLEE, argv=[str(line.place / "pipe")], readable=[str(line.place)])
    assert (ran.status, ran.text) == (0, "fled\n")
    assert not line.is_held()


def test_what_flees_ends_with_its_supervisor(way: Way) -> None:
    """That one is killed without a word, while its program still runs."""
    line = Line(way)
    fled = line.place / "fled"
    os.mkfifo(fled, 0o644)
    more = {"argv": [str(line.place / "pipe"), str(fled)], "readable": [str(line.place)], "say_started": True, "limit": 60.0}
    code = FLEE + "os.open(sys.argv[2], os.O_RDONLY)\ntime.sleep(300)\n"
    with subprocess.Popen(way.words(code, **more), env=way.environment(), stdout=subprocess.PIPE) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"started\n"
        os.close(os.open(fled, os.O_WRONLY))  # waits until the program has come to its end
        (supervisor,) = Path(f"/proc/{engine.pid}/task/{engine.pid}/children").read_text().split()
        os.kill(int(supervisor), signal.SIGKILL)
        ran = json.loads(engine.stdout.read())
    assert (ran["status"], ran["text"]) == (-signal.SIGKILL, "fled\n")
    assert not line.is_held()


def test_nothing_outlives_the_engine(way: Way) -> None:
    """Killed without a word, in the middle of a run."""
    mark = f"mark-{uuid.uuid4()}"
    words = way.words(LEAVE + "time.sleep(300)\n", argv=[mark], say_started=True)
    process = subprocess.Popen(words, env=way.environment(), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    for _ in range(100):
        if len(running_with(mark)) > 4:  # the driver, the supervisor's is none, the program, what it left
            break
        time.sleep(0.1)
    process.kill()
    process.wait()
    for _ in range(100):
        if not running_with(mark):
            return
        time.sleep(0.1)
    pytest.fail(f"still running: {running_with(mark)}")


def test_no_signal_reaches_anybody_else(way: Way) -> None:
    if "user" in way.name and not landlock.scopes_signals():
        pytest.skip("the processes of one account are kept apart from Linux 6.12 on")
    bystander = subprocess.Popen([*WAYS[way.name], "sleep", "60"])
    code = f"""
import os, resource, signal
for pid in (os.getppid(), {bystander.pid}, {os.getpid()}, 1, -{os.getpgid(0)}):
    for number in (0, signal.SIGCONT, signal.SIGTERM):
        try:
            os.kill(pid, number)
            print("GOT", pid, number)
        except OSError:
            pass
    # without time or files it ends as well
    for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE):
        try:
            resource.prlimit(pid, limit, (1, 1))
            print("GOT", pid, "limit", limit)
        except OSError:
            pass
resource.prlimit(0, resource.RLIMIT_CORE, (0, 0))
try:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(-1, signal.SIGTERM)
except OSError:
    pass
print("done")
"""
    try:
        ran = way.run(code)
        assert ran.text.strip() == "done"
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


# Number on x86_64 and on aarch64, and arguments with which it would be asked for.
CALLS = {
    "ptrace": (101, 117, (16, os.getpid(), 0, 0)),
    "process_vm_readv": (310, 270, (1, 0, 0, 0, 0, 0)),
    "pidfd_getfd": (438, 438, (0, 0, 0)),
    "mount": (165, 40, (0, 0, 0, 0, 0)),
    "unshare a user namespace": (272, 97, (0x10000000,)),
    "clone into a user namespace": (56, 220, (0x10000011, 0, 0, 0, 0)),
    "setns": (308, 268, (0, 0)),
    "chroot": (161, 51, (0,)),
    "keyctl": (250, 219, (0, 0)),
    "add_key": (248, 217, (0, 0, 0, 0, 0)),
    "bpf": (321, 280, (0, 0, 0)),
    "io_uring_setup": (425, 425, (1, 0)),
    "io_setup": (206, 0, (1, 0)),
    "userfaultfd": (323, 282, (0,)),
    "perf_event_open": (298, 241, (0, 0, 0, 0, 0)),
    "open_by_handle_at": (304, 265, (0, 0, 0)),
    "inotify_init1": (294, 26, (0,)),
    "init_module": (175, 105, (0, 0, 0)),
    "kexec_load": (246, 104, (0, 0, 0, 0)),
    "reboot": (169, 142, (0, 0, 0, 0)),
    "clock_settime": (227, 112, (0, 0)),
    "type on a terminal": (16, 29, (0, 0x5412, 0)),
    "have others wait who open a file": (72, 25, (0, 1024, 0)),
    "watch a directory by signals": (72, 25, (0, 1026, 0)),
}


def test_doors_of_the_kernel_are_shut(way: Way) -> None:
    code = f"""
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
column = {{"x86_64": 0, "aarch64": 1}}[platform.machine()]
for name, row in {CALLS!r}.items():
    result = libc.syscall(ctypes.c_long(row[column]), *map(ctypes.c_long, row[2]))
    if "clone" in name and result == 0:
        os._exit(0)
    if result != -1 or ctypes.get_errno() != 1:
        print("GOT", name, result, ctypes.get_errno())
print("done")
"""
    assert way.run(code).text.strip() == "done"


def test_no_privilege_is_left_or_can_be_had(way: Way) -> None:
    code = """
import os, stat, subprocess
held = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(held["NoNewPrivs"], held["CapEff"], held["CapPrm"], held["CapAmb"], held["Groups"].strip() or "none")
for attempt in (lambda: os.setuid(1), lambda: os.setgroups([0]), lambda: os.chown(os.environ["HOME"], 12, 12), lambda: os.nice(-5),
                lambda: os.mknod(os.environ["HOME"] + "/memory", 0o600 | stat.S_IFCHR, os.makedev(1, 1))):
    try:
        attempt()
        print("GOT", attempt.__code__.co_names)
    except OSError:
        pass
for name in ("mem", "kmsg", "port", "fuse", "net/tun", "kvm", "loop-control", "vda", "sda", "tty"):
    device = "/dev/" + name
    try:
        os.open(device, os.O_RDONLY)
        print("GOT", device)
    except OSError:
        pass
"""
    ran = way.run(code)
    first, *rest = ran.text.splitlines()
    # a user may not leave the groups that a container gave: without a number of its own, `docker run --user 1001` gives root's
    groups = sorted(map(str, os.getgroups())) if HERE and "user" in way.name else []
    assert sorted(first.split()) == sorted(["1", *["0" * 16] * 3, *(groups or ["none"])])
    assert rest == []


def test_how_it_leaves_cannot_be_told_from_without(way: Way) -> None:
    """The engine judges by this."""
    for code, status in (
        ("import os; os._exit(3)", 3),
        ("import os; os.abort()", -signal.SIGABRT),
        ("import os; os.kill(os.getpid(), 9)", -9),
    ):
        assert way.run(code).status == status


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_two_programs_of_one_engine_have_two_accounts() -> None:
    with prepared("host-root") as way:
        seen = {way.run("import os; print(os.getuid(), os.getgid())").text for _ in range(2)}
    assert len(seen) == 2
    assert not any(line.startswith("0 ") for line in seen)
