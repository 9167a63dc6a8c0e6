"""What is read in the Markdown of an issue or a comment: lines that are commands, blocks of code, and the text with its links.

The text is parsed as CommonMark, not searched, so that a command in a code block, in a quotation or in HTML is none, and that no program
is taken of which a reader sees nothing: whoever asks for it has looked at the page.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_block.html_block import HTML_SEQUENCES
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

COMMAND = "/minify"
# GitHub takes no longer bodies; what a parser does with more is not worth knowing.
MAX_BODY = 70_000

# What takes no room, and comes with what is copied from elsewhere.
_UNSEEN = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_BOUNDARY = re.compile(rf"[{_UNSEEN}]*{re.escape(COMMAND)}(?=[\s{_UNSEEN}]|$)")
_AROUND = "".join(one for one in map(chr, range(0x10000)) if one.isspace() or re.match(f"[{_UNSEEN}]", one))
# elements without an end, or whose end may be left out
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
    | {"p", "li", "tr", "td", "th", "dt", "dd"}
)
# Whose ends end what is open in them (HTML's standard, "in body"), but for tables.
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "button", "center", "details", "dialog", "dir", "div", "dl", "fieldset", "figcaption"}
    | {"figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "main", "menu", "nav", "ol", "pre", "section"}
    | {"summary", "table", "tbody", "tfoot", "thead", "ul"}
)
# A tag or a comment of HTML that ends where it seems to. What is left of HTML without them may hide what follows, as an open quotation
# mark does.
_WHOLE = re.compile(
    r"<(?:/?[a-z][^\s/<>]*(?:[\s/]+[^\s/<>=]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>][^\s<>]*)?)?)*[\s/]*|!--(?!-?>)(?:(?!--!?>|<!--).)*--)>",
    re.IGNORECASE | re.DOTALL,
)
_BEGUN = re.compile(r"<[a-z/!?]", re.IGNORECASE)
# Of these tags GitHub makes text, and what is within is read on (extensions/tagfilter.c), but not where another character stands behind.
_FILTERED = r"(?:title|textarea|style|xmp|iframe|noembed|noframes|script|plaintext)"
_TEXT = re.compile(rf"<(?=/?{_FILTERED}(?:[ \t\n\v\f\r>]|/>))", re.IGNORECASE)
# Elements whose content is not shown: `rp` GitHub lets through (gjtorikian/html-pipeline, sanitization_filter.rb), of the others the
# parser of HTML makes something else.
_HIDING = re.compile(
    rf"<(?:(?:rp|template|select|svg|math|noscript|object|video|audio|canvas|frameset)\b|{_FILTERED}\b(?![ \t\n\v\f\r>]|/>))", re.IGNORECASE
)
# What one parser takes for a comment, or for its end, and another not.
_UNSURE = re.compile(r"<\?|<![^-]|<!---?>|--!>")
# What may be of a fold that begins or ends in a line of text.
_FOLD = re.compile(r"</?(?:details|summary)\b", re.IGNORECASE)
# The definition of a link, which is not shown, as some parser may see it: they do not agree on which addresses are any.
_DEFINITION = re.compile(r"^[ \t>*+\d.)-]*\[(?:[^\[\]\\]|\\.){1,999}\]:", re.MULTILINE | re.DOTALL)
_FOOTNOTE = re.compile(r"\[\^[^\] \t\r\n\0]+\]:[ \t]*")
# What holds no other block.
_LEAVES = frozenset({"inline", "fence", "code_block", "html_block", "hr"})
# Columns by which what belongs to a footnote is indented.
_INDENT = 4
# What makes a table of the lines around it, which need not stand where this parser looks for one: not all of a row is shown.
_COLUMNS = re.compile(r"^(?=[^\n-]*-)[ \t>|:-]+$", re.MULTILINE)
_TAG = re.compile(r"^[ \t>*+\d.)-]*<", re.MULTILINE)
# What ends a link within its words.
_LINK = re.compile(r"</?a\b", re.IGNORECASE)


@dataclass(frozen=True)
class CodeBlock:
    """A fenced code block: the first word of what stands behind the fence, in lower case, and the text; where it lies in a closed fold,
    the words that the page shows of that."""

    language: str
    text: str
    fold: str | None = None


def _command(state: StateInline, silent: bool) -> bool:
    """A rule of the inline parser: a line that begins with the command, where nothing else has claimed its text."""
    start = state.pos
    begun = _BOUNDARY.match(state.src, start) if not start or state.src[start - 1] == "\n" else None
    if begun is None:
        return False
    end = state.src.find("\n", start)
    end = state.posMax if end < 0 else min(end, state.posMax)
    if not silent:
        state.push("minify_command", "", 0).content = state.src[begun.end() : end].strip(_AROUND)
    state.pos = end
    return True


def _definition(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of the block parser: the definition of a link, in one line. What is another block for GitHub would be taken for an address or
    a title, as behind a footnote, which is none."""
    if state.src.startswith("[^", state.bMarks[first] + state.tShift[first]):
        return False
    last, state.lineMax = state.lineMax, first + 1
    try:
        return reference(state, first, end, silent)
    finally:
        state.lineMax = last


def _footnote(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule of the block parser: a footnote, which ends what is before it and holds blocks, as an item of a list does.

    As GitHub's parser has it (github/cmark-gfm, src/blocks.c, open_new_blocks and parse_footnote_definition_block_prefix): a page shows one
    at its end, or, where nothing refers to it, not at all.
    """
    found = _FOOTNOTE.match(state.src, state.bMarks[first] + state.tShift[first], state.eMarks[first])
    if found is None or state.is_code_block(first):
        return False
    if silent:
        return True
    state.push("footnote_open", "", 1).map = [first, end]
    before = state.bMarks[first], state.tShift[first], state.sCount[first], state.parentType
    state.blkIndent += _INDENT
    state.bMarks[first], state.tShift[first], state.sCount[first] = found.end(), 0, state.blkIndent
    state.parentType = "footnote"
    state.md.block.tokenize(state, first, end)
    state.bMarks[first], state.tShift[first], state.sCount[first], state.parentType = before
    state.blkIndent -= _INDENT
    state.push("footnote_close", "", -1)
    return True


def _block_parser() -> MarkdownIt:
    # to GitHub the definition of a link is text, until all blocks are found
    parser = MarkdownIt("commonmark").disable("reference")
    parser.block.ruler.before("list", "footnote", _footnote, {"alt": ["paragraph", "blockquote", "list"]})
    return parser


def _parser() -> MarkdownIt:
    parser = _block_parser()
    parser.inline.ruler.before("text", "minify_command", _command)
    return parser


class _Open(HTMLParser):
    """Which elements of HTML are open: a fold around a command is HTML, though empty lines part it into blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.names: list[str] = []
        self._closed: dict[int, str] = {}  # of those, by their places: folds that are closed, and the words of their summaries
        self._read = True

    def feed(self, data: str) -> None:
        """Read on. What Python's parser does not understand stays open: nothing behind it counts as outside of HTML."""
        try:
            if self._read:
                super().feed(_TEXT.sub("&lt;", data))
        except AssertionError:  # of `<![x`, in Python 3.10 to 3.13
            self._read = False
            self.names.append("!")

    @property
    def fold(self) -> str | None:
        """Where a fold is closed, the words of the innermost such: a page shows nothing else of it."""
        return " ".join(self._closed[max(self._closed)].split()) if self._closed else None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.names.append(tag)
            if tag == "details" and "open" not in dict(attrs):
                self._closed[len(self.names) - 1] = ""

    def handle_data(self, data: str) -> None:
        place = max(self._closed, default=len(self.names))
        if self.names[place + 1 : place + 2] == ["summary"]:
            self._closed[place] += data

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.names:
            return
        at = len(self.names) - 1 - self.names[::-1].index(tag)
        inner = self.names[at + 1 :]
        if tag not in _BLOCKS and _BLOCKS.intersection(inner):
            # what is no block ends none that began in it
            del self.names[at]
            self._closed = {place - (place > at): words for place, words in self._closed.items()}
        elif tag == "table" or "table" not in inner:
            del self.names[at:]
            self._closed = {place: words for place, words in self._closed.items() if place < at}


def _own(tokens: Sequence[Token]) -> Iterator[tuple[Token, bool, bool, str | None]]:
    """Each token outside quotations and footnotes, whether it stands at the top: in no list and no HTML; whether a reader surely sees it;
    and the words of the closed fold that it lies in, which may begin in a line of text."""
    tags, folds, quotes, depth, cells, seen = _Open(), _Open(), 0, 0, 0, True
    footnote = element = False  # what the last block was, or may have been
    for token in tokens:
        fold = folds.fold
        if token.type == "html_block":
            tags.feed(token.content)
            folds.feed(token.content)
            seen = seen and not _BEGUN.search(_WHOLE.sub(" ", token.content))
        elif token.type == "inline" and _FOLD.search(token.content):
            for child in token.children or _inline(token.content):
                folds.feed(child.content if child.type == "html_inline" else html.escape(child.content))
        if token.type in ("html_block", "inline"):
            seen = seen and not _UNSURE.search(token.content) and not any(map(_HIDING.search, _html_of(token)))
        loose = token.type in ("inline", "code_block") and _may_be_html(token, loose=cells > 0, inner=depth > 0)
        if loose:
            seen = seen and not _HIDING.search(token.content) and not _BEGUN.search(_WHOLE.sub(" ", token.content))
        # Text that follows a footnote at once may go on with it. What follows an element of HTML is of it up to an empty line.
        joined = token.meta["joined"]
        gone = (token.type == "inline" and (loose or (footnote and joined))) or (token.type in ("inline", "fence") and element and joined)
        leaf = token.type in _LEAVES
        footnote = token.type == "footnote_close" or (footnote and (not leaf or (token.type == "code_block" and joined)))
        element = (loose and _begins_element(token.content)) or (element and (not leaf or joined))
        cells += token.nesting if token.type.startswith("table_") else 0
        quotes += token.nesting if token.type.startswith(("blockquote_", "footnote_")) else 0
        depth += token.nesting if token.type.startswith(("blockquote_", "footnote_", "list_item_")) else 0
        if not quotes:
            yield token, depth == 0 and not tags.names and fold is None and not gone, seen and not gone, fold


def _may_be_html(token: Token, *, loose: bool, inner: bool) -> bool:
    """Whether GitHub may take a line of a block for the beginning of HTML, which a line of a paragraph is not.

    It is none where it is a `loose` row of a table, or what is left of one, or follows another block at once; and, as what goes on without
    its indent, where it is the `inner` text of a list.
    """
    if loose or token.meta["joined"] or _COLUMNS.search(token.content):
        return _TAG.search(token.content) is not None
    second = token.content.find("\n")
    return inner and second >= 0 and _TAG.search(token.content, second) is not None


def _begins_element(text: str) -> bool:
    """Whether a line of `text` is one with which a block of HTML begins."""
    return any(begins.search(line.lstrip(" \t>*+-.)0123456789")) for line in text.split("\n") for begins, _, _ in HTML_SEQUENCES)


def _html_of(token: Token) -> list[str]:
    """The HTML in a block. `<object object at 0x7f…>`, as Python prints what has no name, is none where it stands in a line."""
    if token.type == "html_block" or not _HIDING.search(token.content):
        return [token.content]
    return [child.content for child in token.children or _inline(token.content) if child.type == "html_inline"]


def _parsed(parser: MarkdownIt, body: str, *, links: bool = False) -> list[Token]:
    """The tokens of a `body`, whose first character GitHub's parser passes over where it is the mark of an encoding (src/blocks.c).

    Each says, as `joined`, whether it follows another line without an empty one between; one of blanks may go on with the item of a list.
    With `links` those lead somewhere whose addresses are defined elsewhere.
    """
    text = body[:MAX_BODY].removeprefix("\ufeff")
    rows = re.split(r"\r\n?|\n", text)
    known: dict[str, Any] = {}
    if links:
        definitions = MarkdownIt("commonmark").disable("inline")
        definitions.block.ruler.at("reference", _definition)
        definitions.parse(text, known)
    tokens = parser.parse(text, known)
    line = 0
    for token in tokens:
        line = token.map[0] if token.map else line
        token.meta["joined"] = 0 < line <= len(rows) and rows[line - 1] != ""
    return tokens


def _inline(text: str) -> list[Token]:
    return [child for one in _parser().parseInline(text) for child in one.children or ()]


def command_lines(body: str) -> tuple[str, ...]:
    """What follows the command on each line of `body` that begins with it, in order."""
    if COMMAND not in body:
        return ()
    found: list[str] = []
    heading = False
    for token, top, _, _ in _own(_parsed(_parser(), body)):
        if token.type == "heading_open":
            heading = token.markup.startswith("#")  # the line begins with that; a line of dashes below is meant as a rule
        elif token.type == "heading_close":
            heading = False
        elif top and token.type == "inline" and not heading:
            folds = _Open()
            for child in token.children or ():
                if child.type == "html_inline":
                    folds.feed(child.content)
                elif child.type == "minify_command" and folds.fold is None:
                    found.append(child.content)
    return tuple(found)


def code_blocks(body: str) -> tuple[CodeBlock, ...]:
    """The fenced code blocks of `body` outside quotations that a reader sees, in order."""
    blocks: list[CodeBlock] = []
    for token, _, seen, fold in _own(_parsed(_parser().disable("inline"), body)):
        if token.type == "fence" and seen:
            words = token.info.split(maxsplit=1)
            blocks.append(CodeBlock(words[0].lower() if words else "", token.content, fold))
    return tuple(blocks)


def shown_text(body: str) -> str:
    """The text of `body` outside quotations and HTML that a reader sees; in place of a link's words the address that it leads to."""
    # beyond CommonMark, since GitHub does not show what a row has beyond the columns of its table
    parts: list[str] = []
    for token, _, seen, _ in _own(_parsed(_block_parser().enable("table"), body, links=True)):
        if seen and (token.type == "fence" or (token.type == "code_block" and not token.meta["joined"])):
            parts.append(token.content)
        elif token.type == "inline" and seen and not (_DEFINITION.search(token.content) or _COLUMNS.search(token.content)):
            parts.append(_shown_line(token.children or ()))
    return "\n".join(parts)


def _shown_line(tokens: Sequence[Token]) -> str:
    words: list[str] = []
    begun, address = 0, ""
    for token in tokens:
        if token.type == "link_open":
            begun, address = len(words), str(token.attrGet("href") or "")
        elif token.type == "link_close":
            # a link without words is none to a reader; of those of a file one is a letter
            seen = re.search("[A-Za-z0-9]", "".join(words[begun:])) is not None
            words[begun:] = [f" {address} "] if seen and address else []
            address = ""
        elif token.type == "html_inline" and address and _LINK.match(token.content):
            address = ""
        elif token.type in ("text", "code_inline"):
            words.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            words.append("\n")
    return "".join(words)
