"""What the page of an issue or a comment shows: lines that are commands, blocks of code, and the text with its links.

The Markdown is read by GitHub's own parser, cmark-gfm, and what that makes of it by a parser of the HTML standard, so that a command in a
code block, in a quotation, a fold or a comment of HTML is none, and that no program is taken of which a reader sees nothing: whoever asks
for it has looked at the page.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import unquote

import cmarkgfm
import nh3
from cmarkgfm.cmark import Options

COMMAND = "/minify"
# GitHub takes no longer bodies; what a parser does with more is not worth knowing.
MAX_BODY = 70_000

# What takes no room, and comes with what is copied from elsewhere.
_UNSEEN = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
# Of that, what people put before a command of which they only speak: no bot takes it then.
_SPOKEN = "\u200b\u2060"
_ROWS = re.compile(r"\r\n?|\n")
_BEGINS = re.compile(rf"(?:(?![{_SPOKEN}])[\s{_UNSEEN}])*{re.escape(COMMAND)}(?=[\s{_UNSEEN}]|$)")
_AROUND = "".join(one for one in map(chr, range(0x10000)) if one.isspace() or re.match(f"[{_UNSEEN}]", one))
# Columns are those of the row in UTF-8.
_PLACE = re.compile(r"([0-9]{1,6}):([0-9]{1,6})-")
_FENCE = re.compile(rb"```|~~~")
_OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_SOURCEPOS

# A tag or a comment of HTML that all parsers end where it seems to end. What begins otherwise may hide what follows, as an open quotation
# mark does. A value without quotation marks ends where HTML has it end, at a blank or the tag's end: to try each slash in it as another end
# has no end itself.
_WHOLE = re.compile(
    r"<(?:(/?[a-z][^\s/<>]*)(?:[\s/]+[^\s/<>=]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>][^\s<>]*(?=[\s>])|(?=>)))?)*[\s/]*|!--(?!-?>)(?:(?!--!?>|<!--).)*--)>",
    re.IGNORECASE | re.DOTALL,
)
_BEGUN = re.compile(r"<[a-z/!?]", re.IGNORECASE)
# Elements whose content a page does not show, or not all parsers: `rp` GitHub lets through (gjtorikian/html-pipeline,
# sanitization_filter.rb), of the last nine it makes text in the most common forms alone (github/cmark-gfm, extensions/tagfilter.c).
_HIDING = frozenset(
    {"rp", "template", "select", "svg", "math", "noscript", "object", "video", "audio", "canvas", "frameset"}
    | {"title", "textarea", "style", "xmp", "iframe", "noembed", "noframes", "script", "plaintext"}
)
# Elements without an end.
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
# Those that are opened again in each paragraph behind them until they end. The more is open, the longer a parser looks for what a tag
# ends.
_REOPENED = frozenset({"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"})
_MOST_REOPENED = 50
_MOST_OPEN = 1_000
# Beside these a page keeps the words of an element. None of them hides what is in it.
_IN_LINES = {"a", "code", "del", "kbd", "q", "s", "samp", "strike", "tt"}
_KEPT = _IN_LINES | {"blockquote", "br", "details", "div", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"}
_KEPT |= {"section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"}
_PLACED = {"data-sourcepos"}
_KEPT_ATTRIBUTES = {"a": {"href"}, "details": {"open"}, "p": _PLACED, "h1": _PLACED, "h2": _PLACED, "pre": {"lang", *_PLACED}}
# Where a command is one; it may stand right behind the HTML of a fold, in no element at all. Of its line a line of dashes below makes a
# heading, but is meant as a rule. A list goes on in the line below it, where that is not indented as what belongs to the list is.
_LINES = frozenset({"p", "h1", "h2"})
_LISTS = frozenset({"ul", "ol", "li"})
# How each of GitHub's notifications ends; and a line with which a mail program begins what it answers: a rule, or the sender, of whose
# address GitHub has made stars.
_MAILED = re.compile(r"^[^>\n]{0,200}(?:\bReply to this email directly\b|\bYou are receiving this because\b)", re.MULTILINE)
_ORIGINAL = re.compile(r"^(?:[^>\n]{0,300}(?:\*{3}@\*{3}\.\*{3}|\bnotifications@)|_{10,}|-{2,} ?Original )", re.MULTILINE)
# An address as people read it, with a path, which may be cut off.
_WRITTEN = re.compile(r"(?<![\w.-])(?:[\w-]{1,63}\.){1,9}[a-z]{2,20}/[^\s…]{1,2000}", re.IGNORECASE)


@dataclass(frozen=True)
class CodeBlock:
    """A fenced code block: the first word of what stands behind the fence, in lower case, and the text; where it lies in a closed fold,
    the words that the page shows of that."""

    language: str
    text: str
    fold: str | None = None


def _sure(page: str) -> str:
    """The beginning of a page of cmark-gfm's that all parsers of HTML read alike, and in time. Text comes escaped from there."""
    at, depth, opened = page.find("<"), 0, Counter[str]()
    while at >= 0:
        tag = _WHOLE.match(page, at)
        name = (tag[1] or "").lower() if tag else ""
        if name in _HIDING or (tag is None and _BEGUN.match(page, at)):
            return page[:at]
        change = 0 if not name or name in _VOID else -1 if name.startswith("/") else 1
        if change > 0 or opened[name[1:]]:
            opened[name.removeprefix("/")] += change
            depth += change
            if depth > _MOST_OPEN or (name in _REOPENED and opened[name] > _MOST_REOPENED):
                return page[:at]
        at = page.find("<", tag.end() if tag else at + 1)
    return page


def _leads_there(words: str, href: str) -> bool:
    """Whether a link with these `words` leads to each address that they show."""
    leads = unquote(href).lower()
    return all(unquote(found[0]).lower().rstrip("./") in leads for found in _WRITTEN.finditer(words))


class _Page(HTMLParser):
    """What a page shows outside of quotations. With a `mark`, a command's line begins with that and its number."""

    def __init__(self, body: str, mark: str = "") -> None:
        super().__init__(convert_charrefs=True)
        text = body[:MAX_BODY].encode("utf-8", "replace").decode()
        self._rows = [row.encode() for row in _ROWS.split(text.removeprefix("\ufeff"))]
        self._mark = re.compile(rf"^[\s{_UNSEEN}]*/{mark}([0-9]+)x", re.MULTILINE) if mark else None
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self._opened: Counter[str] = Counter()  # of those, how many of each name
        self._summaries: dict[int, str] = {}  # of closed folds, by their places among what is open
        self._code = ""
        self._link: list[str] = []
        self.commands: list[tuple[int, bool]] = []  # with whether it stands in a list
        self.blocks: list[CodeBlock] = []
        self.parts: list[str] = []
        html = cmarkgfm.github_flavored_markdown_to_html(text, options=_OPTIONS)
        self.feed(nh3.clean(_sure(html), tags=_KEPT, attributes=_KEPT_ATTRIBUTES, link_rel=None))
        self.close()

    def _within(self, *names: str) -> bool:
        return any(self._opened[name] for name in names)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.handle_data("\n")
        elif tag != "hr":
            self._open.append((tag, dict(attrs)))
            self._opened[tag] += 1
            if tag == "details" and "open" not in dict(attrs):
                self._summaries[len(self._open) - 1] = ""
            elif tag == "pre":
                self._code = ""
            elif tag == "a":
                self._link = []

    def handle_endtag(self, tag: str) -> None:
        _, attributes = self._open.pop()
        self._opened[tag] -= 1
        self._summaries.pop(len(self._open), None)
        if self._within("blockquote"):
            return
        if tag == "a":
            # A link without words is none to a reader; of those of a file one is a letter. Nor is one whose words are an address that it
            # does not lead to. An address within another leads nowhere.
            shown, href = "".join(self._link), attributes.get("href") or ""
            seen = re.search("[A-Za-z0-9]", shown) is not None and _leads_there(shown, href)
            begins, _, rest = href.partition("://")
            address = f" {begins}://{rest.replace('://', ':%2F%2F')} " if begins in ("http", "https") else shown
            self.parts.append(address if seen else "")
        elif tag == "pre" and self._fenced(attributes):
            words = (attributes.get("lang") or "").split(maxsplit=1)
            fold = " ".join(self._summaries[max(self._summaries)].split()) if self._summaries else None
            self.blocks.append(CodeBlock(words[0].lower() if words else "", self._code, fold))
        self.parts.append("\n" if tag not in _IN_LINES else "")

    def handle_data(self, data: str) -> None:
        place = max(self._summaries, default=-1)
        if place >= 0 and [name for name, _ in self._open[place + 1 : place + 2]] == ["summary"]:
            self._summaries[place] += data
        if self._within("pre"):
            self._code += data
        elif self._mark and all(name in _LINES or name in _LISTS for name, _ in self._open):
            self.commands += [(int(number), self._within("li")) for number in self._mark.findall(data)]
        if self._within("a"):
            self._link.append(data)
        elif not self._within("blockquote"):
            self.parts.append(data)

    def _fenced(self, attributes: dict[str, str | None]) -> bool:
        """Whether a block of code stands in a fence, which need not name a language."""
        place = _PLACE.match(attributes.get("data-sourcepos") or "")
        if attributes.get("lang") or place is None:
            return bool(attributes.get("lang"))
        row = self._rows[int(place[1]) - 1 : int(place[1])]
        return bool(row and _FENCE.match(row[0], int(place[2]) - 1))


def _answer(body: str) -> str:
    """The `body` without the mail that it answers, where a mail program has put that below it and quoted nothing.

    GitHub's page folds that away. It is a comment of somebody else's, with its commands and its program.
    """
    footer = _MAILED.search(body)
    if footer is None:
        return body
    begins = _ORIGINAL.search(body, 0, footer.start())
    # without a beginning nobody knows what of it is the answer
    return body[: begins.start()] if begins else ""


def command_lines(body: str) -> tuple[str, ...]:
    """What follows the command on each line of `body` that begins with it, in order."""
    body = _answer(body)
    if COMMAND not in body:
        return ()
    # What is sought in the page stands for one row of the text, so that its words are taken as they were written.
    mark, rows = COMMAND[1:] + secrets.token_hex(8) + "x", _ROWS.split(body[:MAX_BODY])
    rests: list[str] = []
    indented: set[int] = set()
    for index, row in enumerate(rows):
        begun = _BEGINS.match(row)
        if begun is not None:
            indented |= {len(rests)} if row[0].isspace() else set()
            rows[index] = f"{row[: begun.end() - len(COMMAND)]}/{mark}{len(rests)}x{row[begun.end() :]}"
            rests.append(row[begun.end() :].strip(_AROUND))
    found = _Page("\n".join(rows), mark).commands if rests else []
    return tuple(rests[number] for number, listed in found if not (listed and number in indented))


def code_blocks(body: str) -> tuple[CodeBlock, ...]:
    """The fenced code blocks of `body` outside quotations that a reader sees, in order."""
    return tuple(_Page(_answer(body)).blocks)


def shown_text(body: str) -> str:
    """The text of `body` outside quotations that a reader sees; in place of a link's words the address that it leads to."""
    return "".join(_Page(_answer(body)).parts)
