"""Reports that are text: what transformers and diffusers write for each job (`--make-reports`), in the form of pytest's own output."""

from __future__ import annotations

import re
from collections import defaultdict

from bot.action.ci import logs
from bot.action.ci.archive import Late, members, never
from bot.action.ci.failing_test import Failure

# One file for each part, in a directory of the job or with its name before it. The sections come first, the summary has their ids.
_PARTS = ("failures_long", "failures_short", "errors", "summary_short")
_NAME = re.compile(r"(?P<job>(?:.*[/_])?)(?P<part>failures_long|failures_short|errors|summary_short)\.txt", re.DOTALL)
# Bytes of a job's parts.
MAX_JOB = 32 << 20


def in_archive(archive: bytes, job: str = "", late: Late = never) -> tuple[Failure, ...]:
    """The failures in the reports of that kind in the zip file `archive`, which is named after `job`; in some where it gets `late`."""
    jobs: dict[str, dict[str, bytes]] = defaultdict(dict)
    for name, content in members(archive, lambda name: _NAME.fullmatch(name) is not None, late):
        found = _NAME.fullmatch(name)
        assert found is not None
        jobs[found["job"]][found["part"]] = content
    made: list[Failure] = []
    for parts in jobs.values():
        if len(made) >= logs.MAX_FAILURES or late():
            break
        # the short form is the end of the long one
        if "failures_long" in parts:
            parts.pop("failures_short", None)
        text = b"\n".join(parts[part] for part in _PARTS if part in parts)[-MAX_JOB:]
        made += logs.failures(text.decode("utf-8", errors="replace"), job)
    return tuple(made[: logs.MAX_FAILURES])
