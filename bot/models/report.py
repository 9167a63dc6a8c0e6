"""Everything that is posted for one event."""

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
    """An artifact of the run. Downloading it takes a login, and GitHub deletes it after a while."""

    url: str
    expires: str | None = Field(default=None, description="date, as text for people")


class Section(Model):
    """The answer to one request. Its texts were written by the program, so they are hostile."""

    request: Request
    result: Result | None = None
    problem: str | None = Field(default=None, description="for people: why there is no usable result")
    repro: str | None = None
    exported_text: str | None = Field(default=None, description="the exported program as `print` shows it")
    program: str | None = Field(default=None, description="the exported program itself if it is small: zlib, then base64")
    traceback: str | None = Field(default=None, description="the relevant frames of the program's own failure")
    log: str | None = Field(default=None, description="the end of the program's log if there is no traceback")
    files: tuple[Stored, ...] = ()
    unkept: str | None = Field(default=None, description="why some files are not kept although the repository asks for it")
    download: Download | None = None
    altered: bool = Field(default=False, description="whether secrets or personal paths were removed from the texts")
    repro_altered: bool = Field(default=False, description="whether that changed the repro: what was verified is the one before")


class Report(Model):
    """Everything that is posted for one event."""

    marker: str = Field(description="first line of the comment, as in Answer")
    sections: tuple[Section, ...]
    run_url: str | None = None
