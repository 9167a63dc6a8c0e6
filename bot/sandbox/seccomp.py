"""A filter of system calls: it refuses what no program that compiles needs, and sockets if there is no network."""

from __future__ import annotations

import ctypes
import errno
import resource
import socket
import struct

from bot.sandbox import kernel

# <linux/audit.h>; number of each call on x86_64 and on aarch64, None if there is none
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    # these tell the names of files in other people's directories as they are opened, and Landlock does not control them
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    # what outlives all processes: System V's shared memory, queues and semaphores, and message queues. Those of others can be reached by
    # guessing a number.
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # events of asynchronous I/O are limited for the whole machine (fs.aio-max-nr), and one process may take them all
    "io_setup": (206, 0),
    # keys
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # doors to the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "fanotify_init": (300, 262),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    # the machine
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
_CLONE, _CLONE3 = (56, 220), 435
# Calls from Linux 6.15 on (open_tree_attr) have the same numbers on both.
_NEWER = 467
_SOCKET, _SOCKETPAIR, _IOCTL, _PRLIMIT, _SETRLIMIT, _FCNTL = (41, 198), (53, 199), (16, 29), (302, 261), (160, 164), (72, 25)
# every namespace that a process can be cloned into
_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
# Of fcntl, <linux/fcntl.h>. The owner of a readable file may take a lease on it: then, whoever opens it for writing waits, up to 45 s each
# time. F_NOTIFY reports the changes of a directory, as inotify does. Landlock controls neither.
_F_SETLEASE, _F_NOTIFY = 1024, 1026
# Reserving disk space without writing to it: all that there is would be gone at once, faster than anybody looks. fallocate may only give
# some back. The last of these commands are XFS's for reserving, which every file system knows (<linux/falloc.h>).
_FALLOCATE, _PUNCH_HOLE = (285, 47), 2
_REFUSED_IOCTL = (
    *(0x5412, 0x541C),  # typing into other people's terminals
    *(0x40305828, 0x4030582A, 0x40305839),
)
_X32 = 0x40000000

# <linux/bpf_common.h>, <linux/seccomp.h>
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN, _KEEP_BITS = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCH, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32  # low words of the arguments, little endian
_FILTER_MODE = 2
_NETLINK_ROUTE = 0
_KIND_OF_SOCKET = 0xF  # its other bits are flags


def supported() -> bool:
    """Whether there is a filter for this processor."""
    return kernel.machine() in _ARCHITECTURE


def program(machine: str, families: frozenset[int], *, gpu: bool = False) -> bytes:
    """The filter for this kind of `machine`, in the kernel's form; sockets of other `families` than these are refused.

    With `gpu`, Unix packet sockets are allowed nevertheless: CUDA's driver starts with one, by an abstract name, and gives up with error
    304 if it may not. The services of a machine (the container engine, D-Bus, systemd, the journal) take streams and datagrams, so a packet
    socket cannot be connected to them.
    """
    column = _COLUMN[machine]
    rows: list[tuple[int, int, int, int]] = []

    def add(code: int, value: int, yes: int = 0, no: int = 0) -> None:
        rows.append((code, yes, no, value))

    def refuse(number: int, error: int) -> None:
        add(_EQUAL, number, 0, 1)
        add(_RETURN, _ERRNO | error)

    add(_LOAD, _ARCH)
    add(_EQUAL, _ARCHITECTURE[machine], 1, 0)
    add(_RETURN, _KILL)
    add(_LOAD, _NUMBER)
    if machine == "x86_64":
        add(_AT_LEAST, _X32, 0, 1)
        add(_RETURN, _ERRNO | errno.ENOSYS)
    for numbers in _REFUSED.values():
        number = numbers[column]
        if number is not None:
            refuse(number, errno.EPERM)
    # its flags lie in memory, where a filter cannot look: the C library then calls clone
    refuse(_CLONE3, errno.ENOSYS)
    # calls that are newer than this table have not been reviewed: answer as a kernel without them does
    add(_AT_LEAST, _NEWER, 0, 1)
    add(_RETURN, _ERRNO | errno.ENOSYS)

    def within(number: int, body: list[tuple[int, int, int, int]]) -> None:
        """`body` is only for the call `number`; what it does not refuse is allowed."""
        add(_EQUAL, number, 0, len(body) + 1)
        rows.extend(body)
        add(_RETURN, _ALLOW)

    within(_CLONE[column], [(_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, _NAMESPACES), (_RETURN, 0, 0, _ERRNO | errno.EPERM)])
    # only its own limits: without time or files, another process of the account would end. The limit on core dumps silently stays what it
    # is: see `kernel.dump_no_core`.
    own = [(_LOAD, 0, 0, _FIRST), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    of_core = [(_LOAD, 0, 0, _SECOND), (_EQUAL, 0, 5, resource.RLIMIT_CORE)]
    is_set = [(_LOAD, 0, 0, _THIRD), (_EQUAL, 0, 2, 0), (_LOAD, 0, 0, _THIRD + 4), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _ERRNO)]
    within(_PRLIMIT[column], [*own, *of_core, *is_set])
    within(_SETRLIMIT[column], [(_LOAD, 0, 0, _FIRST), (_EQUAL, 0, 1, resource.RLIMIT_CORE), (_RETURN, 0, 0, _ERRNO)])
    for number, commands in ((_IOCTL[column], _REFUSED_IOCTL), (_FCNTL[column], (_F_SETLEASE, _F_NOTIFY))):
        refused = [row for each in commands for row in ((_EQUAL, 0, 1, each), (_RETURN, 0, 0, _ERRNO | errno.EPERM))]
        within(number, [(_LOAD, 0, 0, _SECOND), *refused])
    if not gpu and socket.AF_UNIX not in families:
        # The C library then writes instead, as on a file system without this call. NCCL and TensorPipe, which need a GPU or Unix sockets,
        # would give up: that is how they reserve their shared memory.
        within(_FALLOCATE[column], [(_LOAD, 0, 0, _SECOND), (_ANY_BIT, 1, 0, _PUNCH_HOLE), (_RETURN, 0, 0, _ERRNO | errno.EOPNOTSUPP)])
    pair = [(_LOAD, 0, 0, _FIRST), (_EQUAL, 1, 0, socket.AF_UNIX), (_RETURN, 0, 0, _ERRNO | errno.EACCES)]
    if socket.AF_UNIX not in families:
        # no datagrams, as raw ones are too: either end could still be connected by path to another socket, such as the system log's
        pair += [
            (_LOAD, 0, 0, _SECOND),
            (_KEEP_BITS, 0, 0, _KIND_OF_SOCKET),
            (_EQUAL, 2, 0, socket.SOCK_STREAM),
            (_EQUAL, 1, 0, socket.SOCK_SEQPACKET),
            (_RETURN, 0, 0, _ERRNO | errno.EACCES),
        ]
    within(_SOCKETPAIR[column], pair)
    within(_SOCKET[column], _sockets(families, packets=gpu))
    add(_RETURN, _ALLOW)
    return b"".join(struct.pack("HBBI", *row) for row in rows)


def _sockets(families: frozenset[int], *, packets: bool) -> list[tuple[int, int, int, int]]:
    body: list[tuple[int, int, int, int]] = [(_LOAD, 0, 0, _FIRST)]
    plain = sorted(families - {socket.AF_NETLINK})
    for family in plain:
        body += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    if socket.AF_NETLINK in families:
        # only the protocol that lists the network devices
        body += [
            (_EQUAL, 0, 3, socket.AF_NETLINK),
            (_LOAD, 0, 0, _THIRD),
            (_EQUAL, 0, 1, _NETLINK_ROUTE),
            (_RETURN, 0, 0, _ALLOW),
            (_LOAD, 0, 0, _FIRST),
        ]
    if packets and socket.AF_UNIX not in families:
        body += [
            (_EQUAL, 0, 5, socket.AF_UNIX),
            (_LOAD, 0, 0, _SECOND),
            (_KEEP_BITS, 0, 0, _KIND_OF_SOCKET),
            (_EQUAL, 0, 1, socket.SOCK_SEQPACKET),
            (_RETURN, 0, 0, _ALLOW),
            (_LOAD, 0, 0, _FIRST),
        ]
    for family in (socket.AF_INET, socket.AF_INET6):
        # the error of a machine without a network, which libraries can handle
        body += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ERRNO | errno.ENETUNREACH)]
    return [*body, (_RETURN, 0, 0, _ERRNO | errno.EACCES)]


def enter(families: frozenset[int], *, gpu: bool = False) -> None:
    """Filter the calls of this process and all that it starts, for good; see `program` for `families` and `gpu`. `no_new_privs` must be
    set. Raises OSError if the kernel refuses.
    """
    code = program(kernel.machine(), families, gpu=gpu)
    held = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held)), 16)
    kernel.prctl(kernel.PR_SET_SECCOMP, _FILTER_MODE, ctypes.addressof(header))
