"""What the page of an issue or a comment shows: lines that are commands, blocks of code, and the text with its links.

GitHub's own parser, cmark-gfm, reads the Markdown, and a parser of the HTML standard reads the result. So a command in a code block, a
quotation, a fold or an HTML comment does not count, and no program is taken that a reader cannot see: whoever asks for it has looked at
the page.
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
# GitHub accepts no longer bodies, and parsers should not see them.
MAX_BODY = 70_000

# Characters without width that come with copied text.
_UNSEEN = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
# Those that people put before a command which they only mention: then no bot should take it.
_SPOKEN = "\u200b\u2060"
_ROWS = re.compile(r"\r\n?|\n")
_BEGINS = re.compile(rf"(?:(?![{_SPOKEN}])[\s{_UNSEEN}])*{re.escape(COMMAND)}(?=[\s{_UNSEEN}]|$)")
_AROUND = "".join(one for one in map(chr, range(0x10000)) if one.isspace() or re.match(f"[{_UNSEEN}]", one))
# Columns count the row's UTF-8 bytes.
_PLACE = re.compile(r"([0-9]{1,6}):([0-9]{1,6})-")
_FENCE = re.compile(rb"```|~~~")
_OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_SOURCEPOS

# An HTML tag or comment that all parsers end where it seems to end. Anything that begins differently may hide what follows, as an open
# quotation mark does. An unquoted value ends where HTML ends it, at a blank or at the end of the tag; trying each slash in it as another
# end would take forever.
_WHOLE = re.compile(
    r"<(?:(/?[a-z][^\s/<>]*)(?:[\s/]+[^\s/<>=]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>][^\s<>]*(?=[\s>])|(?=>)))?)*[\s/]*|!--(?!-?>)(?:(?!--!?>|<!--).)*--)>",
    re.IGNORECASE | re.DOTALL,
)
_BEGUN = re.compile(r"<[a-z/!?]", re.IGNORECASE)
# An attribute of such a tag, and its value as it is written.
_ATTRIBUTE = re.compile(r"[\s/]+([^\s/<>=]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s\"'<>][^\s<>]*(?=[\s>])|(?=>)))?")
# Elements whose content a page does not show, or not with all parsers: GitHub lets `rp` through (gjtorikian/html-pipeline,
# sanitization_filter.rb), and turns the last nine into text only in their most common forms (github/cmark-gfm, extensions/tagfilter.c).
_HIDING = frozenset(
    {"rp", "template", "select", "svg", "math", "noscript", "object", "video", "audio", "canvas", "frameset"}
    | {"title", "textarea", "style", "xmp", "iframe", "noembed", "noframes", "script", "plaintext"}
)
# An element in which a page may show what is written in another order than it is read: `bdi` by itself, and all others with a direction.
# Also `auto`, which the first letter decides.
_ISOLATED, _DIRECTION, _AS_READ = "bdi", "dir", "ltr"
# Elements without an end tag.
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
# Elements that are reopened in each following paragraph until they end. The more are open, the longer a parser searches for what a tag
# ends.
_REOPENED = frozenset({"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"})
_MOST_REOPENED = 50
_MOST_OPEN = 1_000
# Elements in which a page writes smaller than around them (GitHub's style sheets; HTML's own for `ruby`). In so many of them there is
# nothing to see; a block of code is two.
_SMALLER = frozenset({"sub", "sup", "small", "ruby", "code", "tt", "samp", "kbd", "pre", "h5", "h6"})
_MOST_SMALLER = 4
# Of all other elements a page keeps only the words. None of these hides its content.
_IN_LINES = {"a", "code", "del", "kbd", "q", "s", "samp", "strike", "tt"}
_KEPT = _IN_LINES | {"blockquote", "br", "details", "div", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"}
_KEPT |= {"section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"}
_PLACED = {"data-sourcepos"}
_KEPT_ATTRIBUTES = {"a": {"href"}, "details": {"open"}, "p": _PLACED, "h1": _PLACED, "h2": _PLACED, "pre": {"lang", *_PLACED}}
# Where a command counts; it may also directly follow the HTML of a fold, in no element at all. A line of dashes below it makes its line a
# heading, but is meant as a rule. A list continues in the line below it, unless that is indented as part of the list is.
_LINES = frozenset({"p", "h1", "h2"})
_LISTS = frozenset({"ul", "ol", "li"})
# How each of GitHub's notifications ends; and a line with which a mail program begins the quoted mail: a rule, or the sender, whose address
# GitHub has replaced with stars.
_MAILED = re.compile(r"^[^>\n]{0,200}(?:\bReply to this email directly\b|\bYou are receiving this because\b)", re.MULTILINE)
_ORIGINAL = re.compile(r"^(?:[^>\n]{0,300}(?:\*{3}@\*{3}\.\*{3}|\bnotifications@)|_{10,}|-{2,} ?Original )", re.MULTILINE)
# An address as people read it, with a path, which may be cut off.
_WRITTEN = re.compile(r"(?<![\w.-])(?:[\w-]{1,63}\.){1,9}[a-z]{2,20}/[^\s…]{1,2000}", re.IGNORECASE)


@dataclass(frozen=True)
class CodeBlock:
    """A fenced code block: the first word after the fence, in lower case, and the text; inside a closed fold, also the words that the page
    shows for it."""

    language: str
    text: str
    fold: str | None = None


def _sure(page: str) -> str:
    """The beginning of a page from cmark-gfm that all HTML parsers read alike, and in time. cmark-gfm escapes text."""
    at, depth, opened = page.find("<"), 0, Counter[str]()
    while at >= 0:
        tag = _WHOLE.match(page, at)
        name = (tag[1] or "").lower() if tag else ""
        if name in _HIDING or (tag is not None and name[:1].isalpha() and _turns(tag[0], name)):
            return page[:at]
        if (tag is None and _BEGUN.match(page, at)) or (name == "rt" and not opened["ruby"]):
            return page[:at]
        change = 0 if not name or name in _VOID else -1 if name.startswith("/") else 1
        if change > 0 or opened[name[1:]]:
            opened[name.removeprefix("/")] += change
            depth += change
            small = sum(opened[each] for each in _SMALLER)
            if depth > _MOST_OPEN or small > _MOST_SMALLER or (name in _REOPENED and opened[name] > _MOST_REOPENED):
                return page[:at]
        at = page.find("<", tag.end() if tag else at + 1)
    return page


def _turns(tag: str, name: str) -> bool:
    """Whether a page may show what follows a whole `tag` in another order; `name` is that of its element."""
    if _DIRECTION not in tag.lower():
        return name == _ISOLATED
    written = [found[2] or "" for found in _ATTRIBUTE.finditer(tag, 1 + len(name)) if found[1].lower() == _DIRECTION]
    # of several only the first counts
    return bool(written or name == _ISOLATED) and "".join(written[:1]).strip("'\"").lower() != _AS_READ


def _leads_there(words: str, href: str) -> bool:
    """Whether a link with these `words` leads to each address that they show."""
    leads = unquote(href).lower()
    return all(unquote(found[0]).lower().rstrip("./") in leads for found in _WRITTEN.finditer(words))


class _Page(HTMLParser):
    """What a page shows outside of quotations. With a `mark`, the line of a command begins with the mark and the command's number."""

    def __init__(self, body: str, mark: str = "") -> None:
        super().__init__(convert_charrefs=True)
        text = body[:MAX_BODY].encode("utf-8", "replace").decode()
        self._rows = [row.encode() for row in _ROWS.split(text.removeprefix("\ufeff"))]
        self._mark = re.compile(rf"^[\s{_UNSEEN}]*/{mark}([0-9]+)x", re.MULTILINE) if mark else None
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self._opened: Counter[str] = Counter()  # number of open elements by name
        self._summaries: dict[int, str] = {}  # of closed folds, by their index among the open elements
        self._code = ""
        self._link: list[str] = []
        self.commands: list[tuple[int, bool]] = []  # with whether it is in a list
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
            # A reader does not see a link without words; for the link to a file, one is a letter. Links whose words are an address to which
            # they do not lead do not count either. An address inside another leads nowhere.
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
        """Whether a code block is fenced; a fence does not need to name a language."""
        place = _PLACE.match(attributes.get("data-sourcepos") or "")
        if attributes.get("lang") or place is None:
            return bool(attributes.get("lang"))
        row = self._rows[int(place[1]) - 1 : int(place[1])]
        return bool(row and _FENCE.match(row[0], int(place[2]) - 1))


def _answer(body: str) -> str:
    """The `body` without the mail that it answers, if a mail program has appended that without quoting it.

    GitHub's page folds it away. It is somebody else's comment, with its own commands and program.
    """
    footer = _MAILED.search(body)
    if footer is None:
        return body
    begins = _ORIGINAL.search(body, 0, footer.start())
    # without its beginning, nobody knows which part is the answer
    return body[: begins.start()] if begins else ""


def command_lines(body: str) -> tuple[str, ...]:
    """What follows the command on each line of `body` that begins with it, in order."""
    body = _answer(body)
    if COMMAND not in body:
        return ()
    # Each mark in the page stands for one row of the text, so that its words are taken as they were written.
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
    """The text of `body` outside quotations that a reader sees; the words of a link are replaced by its address."""
    return "".join(_Page(_answer(body)).parts)
