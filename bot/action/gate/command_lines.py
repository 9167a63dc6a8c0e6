"""What is read in the Markdown of an issue or a comment: lines that are commands, and blocks of code.

The text is parsed as CommonMark, not searched, so that a command in a code block, in a quotation or in HTML is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

COMMAND = "/minify"
# GitHub takes no longer bodies; what a parser does with more is not worth knowing.
MAX_BODY = 70_000

_BOUNDARY = re.compile(re.escape(COMMAND) + r"(?=\s|$)")
# elements without an end, or whose end may be left out
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
    | {"p", "li", "tr", "td", "th", "dt", "dd"}
)


@dataclass(frozen=True)
class CodeBlock:
    """A fenced code block: the first word of what stands behind the fence, in lower case, and the text."""

    language: str
    text: str


def _command(state: StateInline, silent: bool) -> bool:
    """A rule of the inline parser: a line that begins with the command, where nothing else has claimed its text."""
    start = state.pos
    if (start and state.src[start - 1] != "\n") or not _BOUNDARY.match(state.src, start):
        return False
    end = state.src.find("\n", start)
    end = state.posMax if end < 0 else min(end, state.posMax)
    if not silent:
        state.push("minify_command", "", 0).content = state.src[start + len(COMMAND) : end].strip()
    state.pos = end
    return True


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    parser.inline.ruler.before("text", "minify_command", _command)
    return parser


class _Open(HTMLParser):
    """Which elements of HTML are open: a fold around a command is HTML, though empty lines part it into blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.names: list[str] = []
        self._read = True

    def feed(self, data: str) -> None:
        """Read on. What Python's parser does not understand stays open: nothing behind it counts as outside of HTML."""
        try:
            if self._read:
                super().feed(data)
        except AssertionError:  # of `<![x`, in Python 3.10 to 3.13
            self._read = False
            self.names.append("!")

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in _VOID:
            self.names.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        if tag in self.names:
            while self.names.pop() != tag:
                pass


def _own(tokens: Sequence[Token]) -> Iterator[tuple[Token, bool]]:
    """Each token outside quotations, and whether it stands at the top: in no list and no HTML."""
    html, quotes, depth = _Open(), 0, 0
    for token in tokens:
        if token.type == "html_block":
            html.feed(token.content)
        quotes += token.nesting if token.type.startswith("blockquote_") else 0
        depth += token.nesting if token.type.startswith(("blockquote_", "list_item_")) else 0
        if not quotes:
            yield token, depth == 0 and not html.names


def command_lines(body: str) -> tuple[str, ...]:
    """What follows the command on each line of `body` that begins with it, in order."""
    if COMMAND not in body:
        return ()
    found: list[str] = []
    heading = False
    for token, top in _own(_parser().parse(body[:MAX_BODY])):
        if token.type == "heading_open":
            heading = token.markup.startswith("#")  # the line begins with that; a line of dashes below is meant as a rule
        elif token.type == "heading_close":
            heading = False
        elif top and token.type == "inline" and not heading:
            found += [child.content for child in token.children or () if child.type == "minify_command"]
    return tuple(found)


def code_blocks(body: str) -> tuple[CodeBlock, ...]:
    """The fenced code blocks of `body` outside quotations, in order."""
    blocks: list[CodeBlock] = []
    for token, _ in _own(_parser().disable("inline").parse(body[:MAX_BODY])):
        if token.type == "fence":
            words = token.info.split(maxsplit=1)
            blocks.append(CodeBlock(words[0].lower() if words else "", token.content))
    return tuple(blocks)
