"""Accounts that nobody else has, for a program's processes, if we may change the account."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bot.sandbox import kernel

# The capabilities chown, kill, setgid and setuid: with just these, a process can start others under other accounts.
TO_CHANGE = (0, 5, 6, 7)
# Outside of the numbers that people, systems and containers are given.
_DRAWN = ((70_000, 99_999), (62_000, 64_999))
_WORKPLACES = ("GITHUB_WORKSPACE", "RUNNER_TEMP", "RUNNER_TOOL_CACHE", "HOME")
_TRIES = 50
# None is given twice: what is ended with one account would end with another that has its number.
_given: set[int] = set()


def may_change() -> bool:
    """Whether this process may start others under another account."""
    needed = sum(1 << number for number in TO_CHANGE)
    try:
        return kernel.capabilities() & needed == needed
    except OSError:
        return False


def keep_to_this_process() -> None:
    """Let nothing but supervisors inherit the right to change accounts: whatever else this process starts has no special rights."""
    with contextlib.suppress(OSError, AttributeError):
        kernel.hand_on(())


@contextmanager
def handed_on() -> Iterator[None]:
    """What this thread starts meanwhile may change accounts, if this process may and is not root."""
    if sys.platform != "linux" or os.geteuid() == 0 or not may_change():
        yield
        return
    kernel.hand_on(TO_CHANGE)
    try:
        yield
    finally:
        kernel.hand_on(())


def draw(environ: Mapping[str, str]) -> int | None:
    """The number of an account, and of a group, that nobody has: none of this machine or of a running process, not the owner of a workplace
    that `environ` names, and none that was drawn before.

    None if this process can have none.
    """
    people = {account.pw_uid for account in pwd.getpwall()} | {group.gr_gid for group in grp.getgrall()}
    taken = _owners(environ) | people | at_work() | _given
    for low, high in _DRAWN:
        if not (_mapped("uid_map", high) and _mapped("gid_map", high)):
            continue
        for _ in range(_TRIES):
            number = random.SystemRandom().randint(low, high)
            if number not in taken:
                _given.add(number)
                return number
    return None


def groups_of_gpus(paths: list[str]) -> tuple[int, ...]:
    """The groups that own those device nodes at `paths` that not everybody may use."""
    found: set[int] = set()
    for path in paths:
        nodes = [path, *(os.path.join(path, name) for name in os.listdir(path))] if path == "/dev/dri" and os.path.isdir(path) else [path]
        for node in nodes:
            try:
                facts = os.stat(node)
            except OSError:
                continue
            if facts.st_gid and not facts.st_mode & 0o006 and not os.path.isdir(node):
                found.add(facts.st_gid)
    return tuple(sorted(found))


def _owners(environ: Mapping[str, str]) -> set[int]:
    found: set[int] = set()
    for path in (environ[name] for name in _WORKPLACES if environ.get(name)):
        try:
            facts = os.stat(path)
        except OSError:
            continue
        found |= {facts.st_uid, facts.st_gid}
    return found


def at_work() -> set[int]:
    """The accounts of the running processes: the programs of another job may have been given theirs in the same way."""
    found: set[int] = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdecimal():
            with contextlib.suppress(OSError):
                found.add(os.stat(f"/proc/{name}").st_uid)
    return found


def _mapped(table: str, number: int) -> bool:
    """Whether this process's user namespace contains the account `number`."""
    try:
        with open(f"/proc/self/{table}", encoding="ascii") as file:
            rows = [tuple(map(int, line.split())) for line in file]
    except OSError:
        return False
    return any(first <= number < first + count for first, _, count in rows)
