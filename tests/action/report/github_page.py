"""What GitHub makes of Markdown: read by GitHub's own parser, cmark-gfm (package cmarkgfm), with the extensions that GitHub turns on.

Checked against github/cmark-gfm 0.29.0.gfm.13, which the package holds. Behind it GitHub takes most HTML out and looks for mentions,
references, emoji and formulas in all text but that of `a`, `code`, `pre` and their like: so text outside of them is what counts here.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

from bot.action.report.render.text import MARKER_START

# What we write, and what the parser makes of it; anything else came from outside.
TAGS = {
    "a",
    "br",
    "code",
    "details",
    "em",
    "h3",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "summary",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
}
LANGUAGES = {"bash", "python", "text"}
_OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_GITHUB_PRE_LANG | Options.CMARK_OPT_FOOTNOTES
_QUIET = {"code", "pre"}
# What GitHub acts on: mentions, references, links, emoji, formulas, commands of ours.
_LOUD = re.compile(r"@|#|://|www\.|GH-\d|[0-9a-f]{40}|:\w+:|\$|/minify stop|^::", re.MULTILINE)


class Page(HTMLParser):
    """Tags, attributes and comments of a page, its code blocks with their language, and its text outside of code."""

    def __init__(self, body: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.comments: list[str] = []
        self.words: list[str] = []
        self.blocks: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(cmarkgfm.github_flavored_markdown_to_html(body, options=_OPTIONS))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag == "pre":
            self.blocks.append((dict(attrs).get("lang") or "", ""))
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "pre" in self.open:
            language, text = self.blocks[-1]
            self.blocks[-1] = (language, text + data)
        if not _QUIET.intersection(self.open):
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    @property
    def text(self) -> str:
        """All that GitHub would act on."""
        return " ".join(self.words)


def check(body: str, marker: str | None = None, *, links: str = "https://github.com/owner/name/") -> Page:
    """Make sure that nothing of others in `body` acts on GitHub: it stays in the code that it was put in, on a page that is whole.

    `marker` is the one comment that may be hidden in it, `links` how its addresses begin.
    """
    body.encode("utf-8")
    assert not re.search(r"[\x00\u202a-\u202e\x1b\r]", body)
    page = Page(body)
    assert page.open == []
    assert page.tags <= TAGS
    assert [f"<!--{comment}-->" for comment in page.comments] == ([marker] if marker else [])
    assert body.lower().count(MARKER_START) == len(page.comments)
    for tag, name, value in page.attributes:
        assert (tag, name) in {("a", "href"), ("pre", "lang"), ("ol", "start")}
        assert tag != "a" or (value or "").startswith(links)
        assert tag != "pre" or value in LANGUAGES
    loud = _LOUD.search(page.text)
    assert loud is None, page.text[max(loud.start() - 60, 0) : loud.end() + 60]
    return page
