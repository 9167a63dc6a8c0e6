"""What the sandbox kept from a program, told from what ended it: never a program that "did not reproduce"."""

from __future__ import annotations

import os
import re

from bot.failure.outcome import Outcome
from bot.sandbox.sandbox import Sandbox

# The words of Python, of the C library and of the packages that fetch models.
_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|Network unreachable"
    r"|Failed to establish a new connection|Max retries exceeded with url|urlopen error|LocalEntryNotFoundError|OfflineModeIsEnabled"
    r"|couldn't connect to .https?://|Cannot find the requested files in the (?:local|disk) cache|Could not resolve host|\[Errno 101\]"
)
_FILE = re.compile(r"Permission denied: '([^'\n]{1,4000})'|filesystem error: .*Permission denied \[([^\]\n]{1,4000})\]")
_SOCKET = re.compile(r'File "[^"\n]*/(?:socket|multiprocessing/connection)\.py", line (?:.*\n){1,12}PermissionError: \[Errno 13\]')
_ENDS = 30_000  # characters of what was printed


def withheld(outcome: Outcome, box: Sandbox | None) -> tuple[str, str] | None:
    """A sentence on what the sandbox `box` kept from the run of this `outcome`, and the fault in two words; None where it was nothing."""
    if box is None or not box.on:
        return None
    text = outcome.text[-_ENDS:]
    if not box.network and _NETWORK.search(text):
        return "the program needs the network, which the sandbox keeps from it: --network on lets it have that", "no network"
    for match in _FILE.finditer(text):
        path = match[1] or match[2]
        if _is_ours(path):
            where = "it may write in its working directory, its home and its temporary directory alone"
            return f"the sandbox keeps {path} from the program: --read PATH lets it read there; {where}", "a file that the sandbox keeps"
    if not box.network and _SOCKET.search(text):
        return "the program makes a socket, which the sandbox does not allow: --network on does", "no sockets"
    for match in re.finditer(r"No such file or directory: '([^'\n]{1,4000})'", text):
        if "/home/" in match[1] and match[1].startswith(str(box.scratch)):
            return (
                f"the program looks into its home directory, which is an empty one in the sandbox: {match[1].partition('/home/')[2]}",
                "no home",
            )
    return None


def _is_ours(path: str) -> bool:
    """Whether nothing but the sandbox kept a program from this path: we may read it, or write there."""
    folder = os.path.dirname(os.path.abspath(path))
    return os.access(path, os.R_OK) or os.access(folder, os.W_OK)
