"""Keeps files of a result longer than its artifact, on a branch or a release that the report job writes."""

from __future__ import annotations

import logging
import re
from typing import Literal

from bot.action.github.client import GitHub
from bot.action.github.transport import GitHubError
from bot.action.report.render.text import one_line
from bot.action.report.render.verdict import FAILED_HERE, status
from bot.action.report.result_dir import EXPORTED, REPRO, RESULT, Folder, UnreadableResult
from bot.models.report import Section

log = logging.getLogger(__name__)

# Name of the branch, and of the release's tag.
NAME = "torch-minify-results"
# Bytes: GitHub's contents API accepts files of up to 100 MB, but no repository should contain them.
LIMIT = 25 << 20
_NO_NAME = re.compile(r"[^A-Za-z0-9-]+")

Where = Literal["none", "branch", "release"]


def keep(section: Section, folder: Folder | None, where: Where, api: GitHub, repository: str, run: int) -> Section:
    """`section` with the addresses of the files of `folder`, the result of `run`, that `api` kept in `repository`; `where` says how.

    A file that cannot be kept is logged and mentioned: the comment goes on without it.

    Raises:
        GitHubError: there was no answer, however long we waited.
    """
    if where == "none" or folder is None or status(section) not in FAILED_HERE:
        return section
    prefix = f"{run}-{_NO_NAME.sub('-', section.request.id)[:80]}"
    kept: dict[str, str] = {}
    unkept: str | None = None
    for name, content in _contents(section, folder).items():
        try:
            if where == "branch":
                kept[name] = api.put_file(repository, NAME, f"{prefix}/{name}", content, f"Keep {prefix}/{name}")
            else:
                kept[name] = api.put_asset(repository, NAME, f"{prefix}-{name}", content)
        except GitHubError as error:
            unkept = one_line(str(error))
            log.warning("%s is not kept: %s", name, unkept)
            if error.status is None or error.status >= 500:
                raise
    files = tuple(stored.model_copy(update={"kept": kept.get(stored.name)}) for stored in section.files)
    return section.model_copy(update={"files": files, "unkept": unkept})


def _contents(section: Section, folder: Folder) -> dict[str, bytes]:
    """The texts as they are posted, without secrets; the exported program unchanged."""
    held: dict[str, bytes] = {}
    if section.repro is not None:
        held[REPRO] = section.repro.encode("utf-8", errors="replace")
    if section.result is not None:
        held[RESULT] = section.result.to_json().encode()
    try:
        held[EXPORTED] = folder.content(EXPORTED, LIMIT)
    except UnreadableResult as error:
        log.info("%s is not kept: %s", EXPORTED, error)
    return held
