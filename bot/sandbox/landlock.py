"""Landlock: an allow-list of files, TCP, and signals to processes outside, as far as the kernel's ABI version has them."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from bot.sandbox import kernel

# <linux/landlock.h>; the same numbers on every processor
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_V1, _REFER, _TRUNCATE, _IOCTL_DEV = (1 << 13) - 1, 1 << 13, 1 << 14, 1 << 15
_TCP, _SCOPES, _SIGNALS = 0b11, 0b11, 0b10  # bind and connect; abstract unix sockets and signals; signals alone
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
# nobody may make device nodes
_NODES = 1 << 6 | 1 << 11
READ = EXECUTE | READ_FILE | READ_DIR


def abi() -> int:
    """The version of the kernel's Landlock; 0 if there is none."""
    try:
        return kernel.call(_CREATE, None, 0, _VERSION)
    except OSError:
        return 0


def scopes_signals() -> bool:
    """Whether signals to processes outside can be refused."""
    return abi() >= 6


class Ruleset:
    """An allow-list of paths. Nothing is restricted before `enter`. With `tcp`, TCP is refused as well. With `signals_alone`, only signals
    and mounts are refused, if the kernel `scopes_signals`."""

    def __init__(self, *, tcp: bool = False, signals_alone: bool = False) -> None:
        version = abi()
        self._handled = _REFER if signals_alone else _V1
        for since, right in () if signals_alone else ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
            self._handled |= right if version >= since else 0
        words = [self._handled]
        if version >= 4:
            words.append(_TCP if tcp else 0)
        if version >= 6:
            words.append(_SIGNALS if signals_alone else _SCOPES)
        attributes = struct.pack(f"{len(words)}Q", *words)
        self._fd = kernel.call(_CREATE, ctypes.create_string_buffer(attributes, len(attributes)), len(attributes), 0)
        if signals_alone:
            # until Linux 6.15 every ruleset refuses to move files between directories, unless it explicitly allows that
            self._add("/", _REFER, os.O_PATH)

    def allow(self, paths: Iterable[str], *, write: bool = False) -> None:
        """Allow `paths` and what is below them to be read and executed, with `write` also to be written; those that do not exist are
        skipped."""
        rights = self._handled & ~_NODES if write else READ
        for path in paths:
            self._add(path, rights, os.O_PATH)

    def list_only(self, paths: Iterable[str]) -> None:
        """Allow the directories at `paths` and those below them to be listed."""
        for path in paths:
            self._add(path, READ_DIR, os.O_PATH | os.O_DIRECTORY)

    def _add(self, path: str, rights: int, flags: int) -> None:
        try:
            place = os.open(path, flags | os.O_CLOEXEC)
        except OSError:
            return
        try:
            allowed = rights if stat.S_ISDIR(os.fstat(place).st_mode) else rights & _OF_FILES
            rule = struct.pack("=Qi", allowed, place)
            kernel.call(_ADD_RULE, self._fd, _PATH_BENEATH, ctypes.create_string_buffer(rule, len(rule)), 0)
        finally:
            os.close(place)

    def enter(self) -> None:
        """Restrict this process and all that it starts, for good."""
        kernel.call(_RESTRICT, self._fd, 0)
        os.close(self._fd)
