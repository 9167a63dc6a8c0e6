"""All that is posted for one event."""

from __future__ import annotations

from pydantic import Field

from bot.models.failure import Model
from bot.models.request import Request
from bot.models.result import Result


class Stored(Model):
    """A file that came with a result, and where people find it."""

    name: str
    size: int = Field(description="bytes")
    sha256: str
    kept: str | None = Field(default=None, description="URL of a copy that does not expire")


class Download(Model):
    """An artifact of the run. GitHub deletes it after a while, and asks for a login."""

    url: str
    expires: str | None = Field(default=None, description="a date, for people")


class Section(Model):
    """The answer to one request. The texts are what its program wrote: hostile."""

    request: Request
    result: Result | None = None
    problem: str | None = Field(default=None, description="for people: what was wrong with what came back")
    repro: str | None = None
    exported_text: str | None = Field(default=None, description="the exported program as `print` shows it")
    program: str | None = Field(default=None, description="the exported program itself, where it is small: zlib, then base64")
    traceback: str | None = Field(default=None, description="the frames that matter of the program's own failure")
    log: str | None = Field(default=None, description="the end of the program's log, where there is no traceback")
    files: tuple[Stored, ...] = ()
    unkept: str | None = Field(default=None, description="why not all of them are kept, though that is asked for")
    download: Download | None = None
    altered: bool = Field(default=False, description="whether secrets or personal paths were taken out of the texts")


class Report(Model):
    """All that is posted for one event."""

    marker: str = Field(description="the first line of the comment, as in Answer")
    sections: tuple[Section, ...]
    run_url: str | None = None
