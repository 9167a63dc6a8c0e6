"""The filter of system calls, run as the kernel runs it: for every processor, on any machine."""

from __future__ import annotations

import errno
import resource
import socket
import struct
from collections.abc import Sequence

import pytest

from bot.sandbox import kernel, seccomp

ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000
LOCAL = frozenset({socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK})
FAMILIES = {"none": frozenset[int](), "local": LOCAL, "network": LOCAL | {socket.AF_UNIX}}
# <asm/unistd.h>
CALLS = {
    "x86_64": {
        "read": 0,
        "ioctl": 16,
        "shmget": 29,
        "socket": 41,
        "socketpair": 53,
        "clone": 56,
        "ptrace": 101,
        "prlimit64": 302,
        "setrlimit": 160,
        "fallocate": 285,
    },
    "aarch64": {
        "read": 63,
        "ioctl": 29,
        "shmget": 194,
        "socket": 198,
        "socketpair": 199,
        "clone": 220,
        "ptrace": 117,
        "prlimit64": 261,
        "setrlimit": 164,
        "fallocate": 47,
    },
}
CLONE3, X32 = 435, 0x40000000


def verdict(code: bytes, number: int, arguments: Sequence[int] = (), arch: int = ARCHITECTURE["x86_64"]) -> int:
    """What the filter `code` returns of one call: the instructions of <linux/filter.h> that it is made of."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *[*arguments, *[0] * 6][:6])
    rows = [struct.unpack_from("HBBI", code, at) for at in range(0, len(code), 8)]
    held, at = 0, 0
    while True:
        operation, yes, no, value = rows[at]
        at += 1
        if operation == 0x20:
            (held,) = struct.unpack_from("<I", data, value)
        elif operation == 0x54:
            held &= value
        elif operation == 0x06:
            return int(value)
        else:
            holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[operation]
            at += yes if holds else no


def refused(error: int) -> int:
    return 0x00050000 | error


@pytest.mark.parametrize("families", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("machine", ARCHITECTURE)
class TestFilter:
    def said(self, machine: str, families: frozenset[int], call: str, *arguments: int, gpu: bool = False) -> int:
        return verdict(seccomp.program(machine, families, gpu=gpu), CALLS[machine][call], arguments, ARCHITECTURE[machine])

    def test_another_processors_calls_end_the_process(self, machine: str, families: frozenset[int]) -> None:
        other = next(arch for name, arch in ARCHITECTURE.items() if name != machine)
        assert verdict(seccomp.program(machine, families), CALLS[machine]["read"], (), other) == KILL

    def test_what_a_compiler_needs(self, machine: str, families: frozenset[int]) -> None:
        assert self.said(machine, families, "read", 3, 4096, 10) == ALLOW

    @pytest.mark.parametrize("number", [467, 468, 470, 600, 4_000])
    def test_what_is_newer_than_the_filter(self, machine: str, families: frozenset[int], number: int) -> None:
        """One of them is `open_tree` once more (Linux 6.15): a list of what is refused cannot know the next."""
        assert verdict(seccomp.program(machine, families), number, (), ARCHITECTURE[machine]) == refused(errno.ENOSYS)
        assert verdict(seccomp.program(machine, families), 466, (), ARCHITECTURE[machine]) == ALLOW

    @pytest.mark.parametrize("call", ["ptrace", "shmget"])
    def test_what_it_does_not(self, machine: str, families: frozenset[int], call: str) -> None:
        assert self.said(machine, families, call) == refused(errno.EPERM)

    def test_processes_and_threads_but_no_namespaces(self, machine: str, families: frozenset[int]) -> None:
        assert self.said(machine, families, "clone", 17) == ALLOW
        for namespace in ("NEWNS", "NEWCGROUP", "NEWUTS", "NEWIPC", "NEWUSER", "NEWPID", "NEWNET"):
            flag = {
                "NEWNS": 0x00020000, "NEWCGROUP": 0x02000000, "NEWUTS": 0x04000000, "NEWIPC": 0x08000000,
                "NEWUSER": 0x10000000, "NEWPID": 0x20000000, "NEWNET": 0x40000000,
            }[namespace]  # fmt: skip
            assert self.said(machine, families, "clone", flag | 17) == refused(errno.EPERM)
        code = seccomp.program(machine, families)
        assert verdict(code, CLONE3, (), ARCHITECTURE[machine]) == refused(errno.ENOSYS)

    def test_its_own_limits_alone(self, machine: str, families: frozenset[int]) -> None:
        assert self.said(machine, families, "prlimit64", 0, 7) == ALLOW
        assert self.said(machine, families, "prlimit64", 1234, 7) == refused(errno.EPERM)

    @pytest.mark.parametrize("limits", [1, 0x7FFF_1234_0000, 0x7FFF_0000_0000], ids=hex)
    def test_that_of_core_dumps_stays_without_a_word(self, machine: str, families: frozenset[int], limits: int) -> None:
        core = resource.RLIMIT_CORE
        assert self.said(machine, families, "setrlimit", core, limits) == refused(0)
        assert self.said(machine, families, "setrlimit", 7, limits) == ALLOW
        assert self.said(machine, families, "prlimit64", 0, core, limits, 0) == refused(0)
        assert self.said(machine, families, "prlimit64", 0, core, 0, limits) == ALLOW  # it is asked for
        assert self.said(machine, families, "prlimit64", 0, 7, limits, 0) == ALLOW
        assert self.said(machine, families, "prlimit64", 1234, core, limits, 0) == refused(errno.EPERM)

    def test_nobody_types_for_others(self, machine: str, families: frozenset[int]) -> None:
        assert self.said(machine, families, "ioctl", 0, 0x5401) == ALLOW  # TCGETS
        for typing in (0x5412, 0x541C):
            assert self.said(machine, families, "ioctl", 0, typing) == refused(errno.EPERM)
            # the kernel looks at the low word, and so does the filter
            assert self.said(machine, families, "ioctl", 0, 1 << 32 | typing) == refused(errno.EPERM)

    def test_room_is_given_back_but_not_taken(self, machine: str, families: frozenset[int]) -> None:
        for mode in (0, 1, 0x10, 0x11, 0x40):  # to be written to, beyond the end, zeros, no longer shared
            expected = ALLOW if socket.AF_UNIX in families else refused(errno.EOPNOTSUPP)
            assert self.said(machine, families, "fallocate", 3, mode, 0, 4096) == expected
            # NCCL has its shared memory by it
            assert self.said(machine, families, "fallocate", 3, mode, 0, 4096, gpu=True) == ALLOW
        assert self.said(machine, families, "fallocate", 3, 2 | 1, 0, 4096) == ALLOW
        for call in (0x40305828, 0x4030582A, 0x40305839):
            assert self.said(machine, families, "ioctl", 3, call) == refused(errno.EPERM)

    def test_sockets(self, machine: str, families: frozenset[int]) -> None:
        for family in (socket.AF_INET, socket.AF_INET6):
            expected = ALLOW if family in families else refused(errno.ENETUNREACH)
            assert self.said(machine, families, "socket", family, socket.SOCK_STREAM) == expected
        unix = ALLOW if socket.AF_UNIX in families else refused(errno.EACCES)
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            assert self.said(machine, families, "socket", socket.AF_UNIX, kind) == unix
        known = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
        for family in set(range(64)) - known:
            for gpu in (False, True):
                assert self.said(machine, families, "socket", family, socket.SOCK_SEQPACKET, gpu=gpu) == refused(errno.EACCES)
        route = ALLOW if socket.AF_NETLINK in families else refused(errno.EACCES)
        assert self.said(machine, families, "socket", socket.AF_NETLINK, socket.SOCK_RAW, 0) == route
        assert self.said(machine, families, "socket", socket.AF_NETLINK, socket.SOCK_RAW, 9) == refused(errno.EACCES)

    def test_cuda_has_a_socket_of_packets(self, machine: str, families: frozenset[int]) -> None:
        for kind in (socket.SOCK_SEQPACKET, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC):
            assert self.said(machine, families, "socket", socket.AF_UNIX, kind, gpu=True) == ALLOW
        rest = ALLOW if socket.AF_UNIX in families else refused(errno.EACCES)
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            assert self.said(machine, families, "socket", socket.AF_UNIX, kind, gpu=True) == rest
        # and what comes after it is looked at as before
        expected = ALLOW if socket.AF_INET in families else refused(errno.ENETUNREACH)
        assert self.said(machine, families, "socket", socket.AF_INET, socket.SOCK_STREAM, gpu=True) == expected

    def test_pairs_that_cannot_be_connected_elsewhere(self, machine: str, families: frozenset[int]) -> None:
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK):
            assert self.said(machine, families, "socketpair", socket.AF_UNIX, kind) == ALLOW
        datagrams = ALLOW if socket.AF_UNIX in families else refused(errno.EACCES)
        for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC):
            assert self.said(machine, families, "socketpair", socket.AF_UNIX, kind) == datagrams
        assert self.said(machine, families, "socketpair", socket.AF_INET, socket.SOCK_STREAM) == refused(errno.EACCES)


def test_calls_by_the_numbers_of_x32_are_none() -> None:
    code = seccomp.program("x86_64", LOCAL)
    for number in (X32, X32 | CALLS["x86_64"]["ptrace"], X32 | CALLS["x86_64"]["read"]):
        assert verdict(code, number) == refused(errno.ENOSYS)


def test_no_call_of_another_processor_is_refused_by_its_number() -> None:
    """The two number them differently."""
    assert verdict(seccomp.program("x86_64", LOCAL), 253) == refused(errno.EPERM)  # inotify_init
    assert verdict(seccomp.program("aarch64", LOCAL), 253, (), ARCHITECTURE["aarch64"]) == ALLOW


@pytest.mark.parametrize(("machine", "supported"), [("x86_64", True), ("aarch64", True), ("riscv64", False)])
def test_where_there_is_a_filter(monkeypatch: pytest.MonkeyPatch, machine: str, supported: bool) -> None:
    monkeypatch.setattr(kernel, "machine", lambda: machine)
    assert seccomp.supported() is supported


def test_a_filter_is_as_long_as_the_kernel_takes() -> None:
    for machine in ARCHITECTURE:
        code = seccomp.program(machine, FAMILIES["none"], gpu=True)
        assert len(code) % 8 == 0
        assert len(code) // 8 <= 4096  # BPF_MAXINSNS
