"""What the two sides of a sandbox send each other: the order for one process, and the report on how it went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

# The layers, as `result.json` names them.
UID, CAPABILITIES, PRIVILEGES = "uid", "no-capabilities", "no-new-privs"
LANDLOCK, SIGNALS, SECCOMP, RLIMITS, NO_NETWORK = "landlock", "landlock-signals", "seccomp", "rlimits", "no-network"
PRIVATE_TMP = "private-tmp"


# Not a dataclass: a supervisor starts with each process, and importing dataclasses takes longer than the rest of its start.
class Order(NamedTuple):
    """One process: what is started, and what it may do. Paths are absolute.

    An empty `command` starts nothing: it only finds out which layers are available. `uid` None is our own. `give` are directories that
    become the account's own. `tmp` is the directory that becomes its `/tmp`, if possible; `named` are paths that can be found there by the
    names that they have, also through links. `must_reach` are paths that the account is checked for: those that it cannot read are
    reported.
    """

    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = "/"
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    give: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    list_only: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    must_reach: tuple[str, ...] = ()
    tmp: str = ""
    named: tuple[str, ...] = ()
    network: bool = False
    gpu: bool = False  # what CUDA's driver needs besides its devices
    limits: Mapping[str, int] = {}  # names of the module resource, without RLIMIT_
    disk: tuple[str, ...] = ()  # file systems that it must leave room on
    least_free: int = 0  # bytes
    least_files: int = 0  # how many more files can be made there
    most_processes: int = 0
    confined: bool = True  # False: only the account changes, for processes that are not the program
    sole: bool = True  # only this process has the account: all that runs under it ends with it
    keep: tuple[int, ...] = ()  # capabilities that are kept nevertheless
    layers: tuple[str, ...] | None = None  # those that have to be on; None for those that are available

    def encode(self) -> bytes:
        """The order as one line of JSON."""
        return json.dumps(self._asdict()).encode() + b"\n"


def decode(line: bytes) -> Order:
    """The order in a `line` of JSON."""
    message: dict[str, Any] = json.loads(line)
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in message.items()}
    return Order(**values)


class ProcessReport(NamedTuple):
    """How a process went. `failed`: why it was not started. `ended`: which of our limits ended it (empty: none)."""

    layers: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()
    failed: str = ""
    ended: str = ""


def read_report(data: bytes) -> ProcessReport:
    """The report in the lines of `data`; a later line adds to an earlier one."""
    held: dict[str, Any] = {}
    for line in data.splitlines():
        held.update(
            {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in json.loads(line).items()
                if name in ProcessReport._fields
            }
        )
    return ProcessReport(**held)
