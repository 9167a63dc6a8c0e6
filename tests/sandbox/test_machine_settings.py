"""What CUDA's driver needs of `/proc` does not open the settings of the machine to a program of root's that has no account of its own.

That is the case where another account cannot reach its files, as below root's home directory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.ways import prepared

# Opened alone, and not written to.
LOOK = """
import os
skipped = {"self", "thread-self", "net", "mounts"}
for folder, inner, files in os.walk("/proc"):
    inner[:] = [name for name in inner if not name.isdigit() and name not in skipped]
    for name in files:
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK))
            print("GOT", os.path.join(folder, name))
        except OSError:
            pass
print("done")
"""
NAME = """
import os, threading, time
name = lambda pid, thread: open(f"/proc/{pid}/task/{thread}/comm", "w").write("named")
def in_a_thread():
    name(os.getpid(), threading.get_native_id())
def both():
    name(os.getpid(), os.getpid())
    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
both()
if (child := os.fork()) == 0:
    both()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


# Everybody may open these: the kernel then keeps what is asked of them to those that it would give it anyway.
OF_EVERYBODY = ("ns_last_pid", "/proc/pressure/")


@pytest.fixture(params=[True, False], ids=["its own account", "root"])
def data(request: pytest.FixtureRequest) -> Iterator[tuple[str, bool]]:
    """A file, and whether other accounts can reach it. Not below `/tmp`, which a program may have of its own."""
    with tempfile.TemporaryDirectory(prefix="closed-", dir="/var/tmp") as name:
        os.chmod(name, 0o755 if request.param else 0o700)
        Path(name, "data.txt").touch()
        yield str(Path(name, "data.txt")), request.param


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("name", ["host-root", "container-root"])
@pytest.mark.parametrize("mounts", [True, False])
def test_a_gpu_s_driver_opens_no_setting_of_the_machine(name: str, mounts: bool, data: tuple[str, bool]) -> None:
    path, reachable = data
    with prepared(name) as way:
        # too much is to be shown for a `/tmp` of its own
        ran = way.run(LOOK, readable=[path], gpu=True, **({} if mounts else {"set": {"_MOST_SHOWN": 0}}))
        assert ("uid" in ran.layers) == reachable
        assert mounts or "private-tmp" not in ran.layers
        assert [line for line in ran.text.splitlines() if not any(each in line for each in OF_EVERYBODY)] == ["done"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_gpu_s_driver_names_its_threads(data: tuple[str, bool]) -> None:
    path, reachable = data
    with prepared("host-root") as way:
        ran = way.run(NAME, readable=[path], gpu=True)
        if "private-tmp" not in ran.layers and not reachable:
            pytest.skip("root without an account or mounts has no part of /proc, and no GPU")
        assert (ran.status, ran.text) == (0, "0\n")
