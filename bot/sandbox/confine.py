"""The layers, which the process puts on itself between its fork and its exec."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable

from bot.sandbox import kernel, landlock, private_tmp, seccomp
from bot.sandbox.killer import Killer
from bot.sandbox.order import CAPABILITIES, LANDLOCK, NO_NETWORK, PRIVATE_TMP, PRIVILEGES, RLIMITS, SECCOMP, SIGNALS, UID, Order

SHARED_MEMORY = "/dev/shm"
_LOCAL = frozenset({socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK})
# What programs the kernel starts as root, and whether the machine goes on.
_OF_MACHINE = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq")


class LayerMissing(Exception):
    """A layer that has to be on is not available."""


def confine(order: Order, killer: Killer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Put on the layers of the `order`; returns those that are on, and the paths that its account cannot reach. The `killer` starts here,
    unless it has already. Raises LayerMissing if a layer that the order asks for is not available."""
    if not order.confined:
        _become(order)
        return (), ()
    layers: list[str] = []
    alone = False
    if not order.network and _works(order, kernel.own_network):
        alone = _has(kernel.own_network)
    if order.tmp and _works(order, lambda: _own_tmp(order)):
        _own_tmp(order)
        order = order._replace(write=(*order.write, private_tmp.PLACE))
        layers.append(PRIVATE_TMP)
    killer.stand_by_within()  # after the mounts, and before what is for the program alone
    _be_first_to_die()
    if _has(lambda: _limit(order)):
        layers.append(RLIMITS)
    # its paths are opened with the rights that we still have
    rules = _rules(order, tcp=not order.network and not alone) if landlock.abi() else None
    kernel.drop_bounding_set()
    if order.uid is not None and order.gid is not None:
        os.setgroups(list(order.groups))
        os.setresgid(order.gid, order.gid, order.gid)
        os.setresuid(order.uid, order.uid, order.uid)
        layers.append(UID)
    if _has(kernel.drop_capabilities) and not kernel.capabilities():
        layers.append(CAPABILITIES)
    # the kernel resets this when the account changes
    _has(lambda: kernel.prctl(kernel.PR_SET_PDEATHSIG, 9))
    if _has(lambda: kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)):
        layers.append(PRIVILEGES)
    unreachable = tuple(path for path in order.must_reach if not os.access(path, os.R_OK))
    os.chdir(order.cwd)
    if rules is not None and _has(rules.enter):
        layers.append(LANDLOCK)
        if landlock.scopes_signals():
            layers.append(SIGNALS)
    families = _families(order.network, alone)
    if seccomp.supported() and _has(lambda: seccomp.enter(families, gpu=order.gpu)):
        layers.append(SECCOMP)
    if not order.network and (alone or SECCOMP in layers):
        layers.append(NO_NETWORK)
    for layer in order.layers or ():
        if layer not in layers:
            raise LayerMissing(layer)
    return tuple(layers), unreachable


def _become(order: Order) -> None:
    """Take the account of the `order`, with only the capabilities that it keeps."""
    if order.uid is not None and order.gid is not None:
        kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
        os.setgroups(list(order.groups))
        os.setresgid(order.gid, order.gid, order.gid)
        os.setresuid(order.uid, order.uid, order.uid)
        kernel.hold_capabilities(order.keep)
    os.chdir(order.cwd)


def _families(network: bool, alone: bool) -> frozenset[int]:
    """The socket families that a process may use. In its own network, it may talk to itself."""
    if network:
        return _LOCAL | {socket.AF_UNIX}
    return _LOCAL if alone else frozenset()


def _works(order: Order, put_on: Callable[[], object]) -> bool:
    """Whether this process can have its own namespace. Another process tries it, since one in which that fails halfway is unusable.

    Not for a user that is to change the account: its namespace has only one.
    """
    if order.uid is not None and not kernel.capabilities() & 1 << kernel.CAP_SYS_ADMIN:
        return False
    pid = os.fork()
    if pid == 0:
        os._exit(0 if _has(put_on) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _own_tmp(order: Order) -> None:
    listed = (*order.list_only, order.cwd)
    named = (*order.named, *listed, *order.read, *order.write, *order.must_reach, *order.command, order.tmp)
    private_tmp.enter(order.tmp, order.read, order.write, listed, named)
    if order.uid is None:
        # not for an account of its own: what that leaves there can be told from what others have, and removed
        _has(lambda: kernel.own_memory(SHARED_MEMORY, _room(order)))


def _room(order: Order) -> int:
    """Bytes that a program may have in shared memory: as much as would be left to it of the machine's."""
    facts = os.statvfs(SHARED_MEMORY)
    free = facts.f_bavail * facts.f_frsize
    return max(free - order.least_free, free // 2)


def _rules(order: Order, *, tcp: bool) -> landlock.Ruleset:
    rules = landlock.Ruleset(tcp=tcp)
    rules.allow(order.read)
    rules.list_only(order.list_only)
    rules.allow(order.write, write=True)
    if order.gpu and not _may_set_up_machine(order):
        # CUDA's driver names its threads in /proc/PID/task/TID/comm, and gives up with error 304 if it may not. The PID is not known yet.
        # The kernel refuses most writes there to other accounts, and to processes that do not trace the one that is written to.
        rules.allow(["/proc"], write=True)
    return rules


def _may_set_up_machine(order: Order) -> bool:
    """Whether the program of the `order` could change settings of the machine below `/proc`: root without any capability may, unless they
    are mounted read-only, by us or by a container."""
    return order.uid is None and os.geteuid() == 0 and not all(map(_is_read_only, _OF_MACHINE))


def _is_read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _be_first_to_die() -> None:
    """Have the kernel kill this process before any other if the machine runs out of memory."""

    def say() -> None:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")

    _has(say)


def _limit(order: Order) -> None:
    for name, value in order.limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(number)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (most, most))


def _has(put_on: Callable[[], object]) -> bool:
    """Whether a layer could be put on."""
    try:
        put_on()
    except OSError:
        return False
    return True
