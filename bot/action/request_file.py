"""The request file that the gate writes and the other jobs read. In between it was in the hands of other people's code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bot import __version__
from bot.action.console import InputError
from bot.models.request import Request

# In a result directory: the key of its request.
KEY_FILE = "request.sha256"
# In place of a hash: an output of the gate's job did not arrive. An empty hash would not be compared.
DROPPED = "dropped"
# Bytes.
MAX_SIZE = 32 << 20


def to_json(requests: Sequence[Request]) -> str:
    """The text of a request file for `requests`."""
    return json.dumps([request.model_dump(mode="json", by_alias=True) for request in requests], indent=2) + "\n"


def sha256(text: str) -> str:
    """The hash of the `text` of a request file, which the gate outputs separately: no other job can change the output of a job."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def key(request: Request) -> str:
    """The key by which a result says which `request` it answers: artifacts of earlier attempts of a run remain next to those of later
    ones."""
    return sha256(to_json([request]))


def read(path: Path, expected: str = "") -> tuple[Request, ...]:
    """The requests in the file at `path`, at least one; `expected` is its hash, if known. Raises InputError if the file cannot be read, is
    larger than `MAX_SIZE`, or is not what the gate wrote, or if it is not known what that was."""
    if expected == DROPPED:
        raise InputError(
            "an output of the job gate did not arrive: that job was cut off, or GitHub kept the output back, as it does where the value of "
            "a secret of the repository or the organization is part of it"
        )
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SIZE + 1)
        if len(content) > MAX_SIZE:
            raise InputError(f"{path} is larger than {MAX_SIZE >> 20} MiB")
        if expected and hashlib.sha256(content).hexdigest() != expected:
            raise InputError(f"{path} is not the file that the gate wrote")
        requests = TypeAdapter(tuple[Request, ...]).validate_json(content)
    except (OSError, ValidationError) as error:
        what = f"{error.error_count()} fields are wrong or missing" if isinstance(error, ValidationError) else str(error)
        if expected and isinstance(error, ValidationError):  # although it is what the gate wrote
            what += f". It is as the gate wrote it, so the torch-minify here, {__version__}, is not that of the workflow: install that one"
        raise InputError(f"cannot read the requests in {path}: {what}") from error
    if not requests:
        raise InputError(f"{path} holds 0 requests")
    return requests


def read_one(path: Path, index: int, expected: str = "") -> Request:
    """The request number `index` (from 0) in the file at `path`, whose hash is `expected` if known. Raises InputError if there is none, or
    if the file cannot be used."""
    requests = read(path, expected)
    if not 0 <= index < len(requests):
        raise InputError(f"{path} holds {len(requests)} requests, none with index {index}")
    return requests[index]
