"""What the sandbox kept from a program, told from how that ended. Such a program never counts as one that "did not reproduce"."""

from __future__ import annotations

import os
import re

from bot.engine.options import Ended
from bot.failure.machine_faults import last_line
from bot.failure.outcome import Outcome
from bot.models.failure import shortened
from bot.sandbox import private_tmp
from bot.sandbox.sandbox import Sandbox

# Messages of Python, of the C library and of the packages that fetch models.
_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|Network unreachable"
    r"|Failed to establish a new connection|Max retries exceeded with url|urlopen error|LocalEntryNotFoundError|OfflineModeIsEnabled"
    r"|couldn't connect to .https?://|Cannot find the requested files in the (?:local|disk) cache|Could not resolve host|\[Errno 101\]"
)
# Messages of a process group's store, and of gloo, if there are no sockets.
_GROUP = re.compile(
    r"server socket has failed to (?:bind|listen).*(?:ENETUNREACH|EACCES|EPERM|network is unreachable|permission denied)"
    r"|client socket has failed to connect.*Network is unreachable|Cannot resolve \S+ to a \(local\) address",
    re.DOTALL,
)
_DENIED = "(?:Permission denied|Read-only file system)"
_FILE = re.compile(rf"{_DENIED}: '([^'\n]{{1,4000}})'|filesystem error: .*{_DENIED} \[([^\]\n]{{1,4000}})\]")
_MISSING = re.compile(
    r"No such file or directory: '([^'\n]{1,4000})'"
    r'|No such file or directory: "([^"\n]{1,4000})"'
    r"|can't open file '([^'\n]{1,4000})': \[Errno 2\]"
)
_SOCKET = re.compile(r'File "[^"\n]*/(?:socket|multiprocessing/connection)\.py", line (?:.*\n){1,12}PermissionError: \[Errno 13\]')
_REFUSED = re.compile(rf"{_DENIED}|Operation not permitted", re.IGNORECASE)
_ENDS = 30_000  # characters at the end of the output


def withheld(outcome: Outcome, box: Sandbox | None, failure: str | None = None) -> Ended | None:
    """What the sandbox `box` kept from the run with this `outcome`, as the end of the job; None if it kept nothing.

    `failure` holds the words of a failure that could be minimized, empty for a crash; if given, only these count.
    """
    if box is None or not box.on:
        return None
    text = outcome.text[-_ENDS:] if failure is None else failure
    if not box.network and _GROUP.search(text):
        said = (
            "the ranks of a process group talk over sockets, for which the sandbox needs a network of the program's own (as root, or where"
            " user namespaces may be made): --network on lets them talk without one"
        )
        return Ended("error", "machine_fault", said, machine_fault="no sockets")
    if not box.network and _NETWORK.search(text):
        said = "the program needs the network, which the sandbox keeps from it: --network on lets it have that"
        return Ended("error", "machine_fault", said, machine_fault="no network")
    for match in _FILE.finditer(text):
        path = match[1] or match[2]
        if _is_ours(path):
            where = "it may write in a copy of its working directory, in its home and its temporary directory alone"
            # a file that does not exist was to be written
            how = "--read PATH lets it read there; " if os.path.exists(path) else ""
            said = f"the sandbox keeps {path} from the program: {how}{where}"
            return Ended("error", "needs_file", said, machine_fault="a file that the sandbox keeps")
    if not box.network and _SOCKET.search(text):
        said = "the program makes a socket, which the sandbox does not allow: --network on does"
        return Ended("error", "machine_fault", said, machine_fault="no sockets")
    for match in _MISSING.finditer(text):
        path = match[1] or match[2] or match[3]
        if os.path.abspath(path).startswith(f"{private_tmp.PLACE}/") and os.path.exists(path):
            said = f"the sandbox keeps {path} from the program: --read PATH lets it read there"
            return Ended("error", "needs_file", said, machine_fault="a file that the sandbox keeps")
        before, home, below = path.partition("/home/")
        if home and before.startswith(str(box.scratch)):
            said = f"the program looks for {below} in its home directory, which is empty in the sandbox"
            return Ended("error", "needs_file", said, machine_fault="no home")
    last = last_line(outcome) if failure is None else failure
    # an operation that a GPU does not permit, as in a capture of CUDA graphs, is a failure like any other
    refused = _REFUSED if failure is None else re.compile(_DENIED)
    if outcome.status != "ok" and refused.search(last) and not _FILE.search(last):
        # native code does not name the file
        said = f"the program was denied access to something, possibly by the sandbox: {shortened(last, 300)}"
        return Ended("error", "needs_file", said, machine_fault="a file that the sandbox keeps")
    return None


def _is_ours(path: str) -> bool:
    """Whether only the sandbox kept this path from a program: we can read it, or write there."""
    folder = os.path.dirname(os.path.abspath(path))
    return os.access(path, os.R_OK) or os.access(folder, os.W_OK)
