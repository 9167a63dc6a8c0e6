"""Every question that was asked, on disk as soon as it is answered: the memo of this run and of one that resumes it."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bot.models.failure import Verdict


def key_of(text: str, *terms: str) -> str:
    """The memo's key for the script `text`; `terms` are what else its answer depends on: the criterion and the plan."""
    return hashlib.sha256("\0".join((*terms, text)).encode()).hexdigest()[:24]


class Ledger:
    """`reduction.jsonl` at `path`: a line for each query, appended at once. With `resume`, the lines that are there count, if they were
    answered with the same `versions`, which may be filled in later."""

    def __init__(self, path: Path, *, resume: bool, versions: Mapping[str, str] = MappingProxyType({})) -> None:
        self.path = path
        self._versions = versions
        self.queries = 0
        self.memo_hits = 0
        self.known: dict[str, Verdict] = {}
        self._lock = threading.Lock()
        if resume and path.exists():
            held = path.read_bytes()
            whole = held.rfind(b"\n") + 1
            if whole < len(held):
                os.truncate(path, whole)  # a line cut off by a kill must not swallow the next one
            for line in held[:whole].splitlines():
                try:
                    entry = json.loads(line)
                    key, verdict = entry["key"], Verdict(entry["verdict"])
                except (ValueError, KeyError, TypeError):
                    continue  # a full disk cuts lines as well
                if verdict not in (Verdict.INFRA, Verdict.TIMEOUT):
                    self.known[key] = verdict
        else:
            path.write_text("", encoding="utf-8")

    def recall(self, key: str) -> Verdict | None:
        """The verdict, if the question of this `key` was asked before."""
        with self._lock:
            verdict = self.known.get(self._here(key))
            if verdict is not None:
                self.memo_hits += 1
            return verdict

    def record(self, key: str, verdict: Verdict, **facts: Any) -> None:
        """Remember the `verdict` on the question of this `key`, and write it with the `facts`."""
        with self._lock:
            key = self._here(key)
            self.queries += 1
            self.known[key] = verdict
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"n": self.queries, "key": key, "verdict": verdict.value, **facts}) + "\n")

    def _here(self, key: str) -> str:
        """The key of a question as it is answered with these versions: another torch may answer differently."""
        return key_of(key, json.dumps(dict(self._versions), sort_keys=True)) if self._versions else key
