"""The system calls that Python does not wrap."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import struct

# <linux/prctl.h>, <linux/securebits.h>, <linux/capability.h>
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_SECUREBITS = 1, 24, 28
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER = 38, 22, 36
PR_SET_DUMPABLE, PR_SET_KEEPCAPS = 4, 8
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, PR_CAP_AMBIENT_RAISE = 47, 4, 2
NOROOT_LOCKED = 0b11  # SECBIT_NOROOT and its lock: uid 0 is an account like others
CAPABILITY_VERSION = 0x20080522
LAST_CAPABILITY = 63
CAP_SYS_ADMIN = 21
CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS = 0x10000000, 0x40000000, 0x00020000
# <linux/mount.h>; the system call's number is the same on every processor
_MS_BIND, _MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV = 1 << 12, 1 << 14, 1 << 18, 1 << 1, 1 << 2
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
_CAPSET = {"x86_64": 126, "aarch64": 91}
# <linux/sockios.h>
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1

# Bytes of a core dump. With 0, the kernel still starts the program that a machine's core_pattern pipes to (apport, or systemd-coredump): as
# root, and outside of what may be written. With 1 it does not, since it takes that for a dump of that program itself; and 1 byte is too
# little for a file.
_NO_DUMP = 1

_libc = ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: int | ctypes.Array[ctypes.c_char] | None) -> int:
    """The result of the system call `number` with these `arguments`. Raises OSError if it fails."""
    words = [None if word is None else ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def prctl(option: int, *arguments: int) -> None:
    """`prctl(2)` with this `option` and its `arguments`. Raises OSError if it fails."""
    words = [ctypes.c_ulong(word) for word in (*arguments, 0, 0, 0, 0)[:4]]
    if _libc.prctl(ctypes.c_int(option), *words) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def dump_no_core(pid: int = 0) -> None:
    """Have the kernel keep nothing of the memory of the process `pid` (0: this one), or of those that it starts, when a signal ends it.
    Raises OSError if there is no such process."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
    most = _NO_DUMP if hard == resource.RLIM_INFINITY else min(_NO_DUMP, hard)
    resource.prlimit(pid, resource.RLIMIT_CORE, (most, most))


def machine() -> str:
    """The kind of processor, as Linux calls it."""
    return os.uname().machine


def capabilities() -> int:
    """The effective capabilities of this process, as a bit set."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next((int(line.split()[1], 16) for line in file if line.startswith("CapEff:")), 0)


def drop_bounding_set() -> None:
    """Let no program that is started later gain any capability; without CAP_SETPCAP nothing happens."""
    for number in range(LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError:
            break  # not ours to drop, or past the last that this kernel has
    try:
        prctl(PR_SET_SECUREBITS, NOROOT_LOCKED)
    except OSError:
        return


def drop_capabilities() -> None:
    """Give up every capability that this process holds. Raises OSError if the kernel refuses."""
    with contextlib.suppress(OSError):  # a kernel without ambient ones
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = ctypes.create_string_buffer(struct.pack("Ii", CAPABILITY_VERSION, 0))
    call(_CAPSET[machine()], header, ctypes.create_string_buffer(24))


def hold_capabilities(numbers: tuple[int, ...]) -> None:
    """Hold the capabilities with these `numbers`, and no others, also after an exec. Raises OSError if they are not ours to hold."""
    bits = sum(1 << number for number in numbers)
    header = ctypes.create_string_buffer(struct.pack("Ii", CAPABILITY_VERSION, 0))
    low, high = bits & 0xFFFFFFFF, bits >> 32
    call(_CAPSET[machine()], header, ctypes.create_string_buffer(struct.pack("6I", low, low, low, high, high, high), 24))
    hand_on(numbers)


def hand_on(numbers: tuple[int, ...]) -> None:
    """Let what this thread starts have the capabilities with these `numbers`, which it holds, and no others. Raises OSError if the kernel
    refuses."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    for number in numbers:
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number)


def _unshare(flags: int) -> None:
    if _libc.unshare(flags) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _own(namespace: int) -> None:
    if capabilities() & 1 << CAP_SYS_ADMIN:
        _unshare(namespace)
        return
    # a user may have one in a user namespace, where it has all rights; its rights on the rest of the machine do not change
    uid, gid = os.geteuid(), os.getegid()
    _unshare(CLONE_NEWUSER | namespace)
    for table, row in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{table}", "w", encoding="ascii") as file:
            file.write(row)


def own_network() -> None:
    """Move this process to its own network, which has only a loopback device, and bring that up. If it fails, this process is in no usable
    state. Raises OSError if that is not allowed.
    """
    import fcntl
    import socket

    _own(CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def own_mounts() -> None:
    """Let this process mount things that nobody else sees. If it fails, this process is in no usable state. Raises OSError if that is not
    allowed."""
    _own(CLONE_NEWNS)
    _mount("none", "/", _MS_REC | _MS_PRIVATE)


def bind(source: str, target: str, *, writable: bool) -> None:
    """Bind-mount `source` at `target`, with what is mounted below it; `writable` or read-only. Raises OSError if that is not allowed."""
    _mount(source, target, _MS_BIND | _MS_REC)
    if not writable:
        read_only(target, whole=True)


def read_only(target: str, *, whole: bool = False, on: bool = True) -> None:
    """Make what is mounted at `target` read-only for this process or, without `on`, writable; `whole`: with what is mounted below it.
    Raises OSError if that is not allowed."""
    attributes = ctypes.create_string_buffer(struct.pack("4Q", _MOUNT_ATTR_RDONLY * on, _MOUNT_ATTR_RDONLY * (not on), 0, 0), 32)
    path = ctypes.create_string_buffer(os.fsencode(target))
    call(_MOUNT_SETATTR, _AT_FDCWD, path, _AT_RECURSIVE if whole else 0, attributes, 32)


def own_memory(target: str, size: int) -> None:
    """Mount at `target` a file system in memory of `size` bytes that nobody else sees, and that disappears with its last process. Raises
    OSError if that is not allowed."""
    _mount("tmpfs", target, _MS_NOSUID | _MS_NODEV, b"tmpfs", f"mode=1777,size={size}".encode())


def _mount(source: str, target: str, flags: int, kind: bytes | None = None, options: bytes | None = None) -> None:
    if _libc.mount(os.fsencode(source), os.fsencode(target), kind, ctypes.c_ulong(flags), options) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)
