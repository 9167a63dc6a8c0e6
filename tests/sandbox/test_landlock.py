"""What is asked of Landlock by each version of it; the kernel's side is written down, not called."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox import kernel, landlock

CREATE, ADD_RULE, RESTRICT = 444, 445, 446
# <linux/landlock.h>
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, MAKE_CHAR, MAKE_BLOCK = 1, 2, 4, 8, 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
V1 = (1 << 13) - 1


class Kernel:
    """A kernel whose Landlock is of this `version`."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.attributes: tuple[int, ...] = ()
        self.rules: list[tuple[str, int]] = []  # what is allowed, and which rights
        self.entered: list[int] = []
        self.open: list[int] = []

    def call(self, number: int, *arguments: Any) -> int:
        if number == CREATE:
            given, size, flags = arguments
            if flags:
                if not self.version:
                    raise OSError
                return self.version
            self.attributes = struct.unpack(f"{size // 8}Q", ctypes.string_at(given, size))
            self.open.append(os.open(os.devnull, os.O_RDONLY))
            return self.open[-1]
        if number == ADD_RULE:
            _, kind, rule, flags = arguments
            assert (kind, flags) == (1, 0)
            rights, place = struct.unpack("=Qi", rule.raw)
            self.rules.append((os.readlink(f"/proc/self/fd/{place}"), rights))
            return 0
        assert number == RESTRICT
        self.entered.append(arguments[0])
        return 0


def kernel_of(monkeypatch: pytest.MonkeyPatch, version: int) -> Kernel:
    made = Kernel(version)
    monkeypatch.setattr(kernel, "call", made.call)
    return made


@pytest.mark.parametrize(("version", "signals"), [(0, False), (5, False), (6, True), (7, True)])
def test_what_the_kernel_has(monkeypatch: pytest.MonkeyPatch, version: int, signals: bool) -> None:
    kernel_of(monkeypatch, version)
    assert landlock.abi() == version
    assert landlock.scopes_signals() is signals


@pytest.mark.parametrize("tcp", [True, False])
@pytest.mark.parametrize(
    ("version", "files", "more"),
    [
        (1, V1, 0),
        (2, V1 | REFER, 0),
        (3, V1 | REFER | TRUNCATE, 0),
        (4, V1 | REFER | TRUNCATE, 1),
        (5, V1 | REFER | TRUNCATE | IOCTL_DEV, 1),
        (6, V1 | REFER | TRUNCATE | IOCTL_DEV, 2),
    ],
)
def test_a_ruleset_handles_what_the_version_knows(monkeypatch: pytest.MonkeyPatch, version: int, files: int, more: int, tcp: bool) -> None:
    made = kernel_of(monkeypatch, version)
    landlock.Ruleset(tcp=tcp)
    assert made.attributes == (files, 0b11 if tcp else 0, 0b11)[: 1 + more]
    os.close(made.open[0])


def test_of_signals_alone_nothing_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files may be moved between directories: until Linux 6.15 any ruleset that does not say so refuses it."""
    made = kernel_of(monkeypatch, 6)
    landlock.Ruleset(signals_alone=True).enter()
    assert made.attributes == (REFER, 0, 0b10)
    assert made.rules == [("/", REFER)]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A directory, and a file."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    return str(tmp_path), str(tmp_path / "file")


def test_rights_of_directories_and_of_files(monkeypatch: pytest.MonkeyPatch, files: tuple[str, str]) -> None:
    made = kernel_of(monkeypatch, 6)
    rules = landlock.Ruleset(tcp=True)
    directory, file = files
    rules.allow([directory, file, directory + "/none"])
    rules.allow([directory, file], write=True)
    rules.list_only([directory, file, directory + "/none"])
    everything = V1 | REFER | TRUNCATE | IOCTL_DEV
    assert made.rules == [
        (directory, EXECUTE | READ_FILE | READ_DIR),
        (file, EXECUTE | READ_FILE),
        (directory, everything & ~(MAKE_CHAR | MAKE_BLOCK)),
        (file, EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV),
        (directory, READ_DIR),  # a file has nothing to list
    ]


def test_an_older_kernel_is_asked_for_no_right_that_it_does_not_know(monkeypatch: pytest.MonkeyPatch, files: tuple[str, str]) -> None:
    made = kernel_of(monkeypatch, 1)
    landlock.Ruleset(tcp=True).allow(files, write=True)
    assert made.rules == [(files[0], V1 & ~(MAKE_CHAR | MAKE_BLOCK)), (files[1], EXECUTE | WRITE_FILE | READ_FILE)]


def test_no_place_stays_open(monkeypatch: pytest.MonkeyPatch, files: tuple[str, str]) -> None:
    made = kernel_of(monkeypatch, 6)
    before = set(os.listdir("/proc/self/fd"))
    rules = landlock.Ruleset(tcp=True)
    rules.allow(files)
    rules.list_only(files)
    rules.enter()
    assert made.entered == made.open
    assert set(os.listdir("/proc/self/fd")) == before
