"""Commands and code are read from Markdown as GitHub has it."""

from __future__ import annotations

import re
import time

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given
from hypothesis import strategies as st

from bot.action.gate.page import CodeBlock, code_blocks, command_lines, shown_text

LINK = "https://github.com/user-attachments/files/123456/program.py"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("/minify", ("",)),
        ("/minify help", ("help",)),
        ("   /minify help  ", ("help",)),
        ("hello\n/minify help\nbye", ("help",)),
        ("hello\r\n/minify help\r\n", ("help",)),
        ("/minify help\n---", ("help",)),
        ("/minify a_b*c*_d <e> &amp; \\x `y`", ("a_b*c*_d <e> &amp; \\x `y`",)),
        ("/minify\n/minify stop", ("", "stop")),
        ("<b>x</b> y\n/minify help", ("help",)),
        ("<details>\n\nfold\n\n</details>\n\n/minify help", ("help",)),
        ("מה קורה\n/minify help", ("help",)),
        ("/minify\u2028help", ("help",)),
        ("in <module>\n\n/minify help", ("help",)),  # an element that nobody knows, whose words a page shows
        ("x <b>\n\n/minify help", ("help",)),
        ("/minify a `b\n/minify c", ("a `b", "c")),
        ("/minify help\r\r- a", ("help",)),
        # no commands
        ("", ()),
        ("/minifyx", ()),
        ("/minify-all", ()),
        ("/MINIFY", ()),
        ("please /minify", ()),
        ("\\/minify", ()),
        ("`/minify`", ()),
        ("`x\n/minify\ny`", ()),
        ("``` \n/minify\n```", ()),
        ("~~~\n/minify", ()),
        ("    /minify", ()),
        ("> /minify", ()),
        ("> a\n/minify", ()),  # the quotation's paragraph goes on
        ("- /minify", ()),
        ("1. x\n\n   /minify", ()),
        ("# /minify", ()),
        ("<!--\n/minify\n-->", ()),
        ("<!--\n\n/minify\n\n-->", ()),
        ("<details>\n/minify\n</details>", ()),
        ("<details>\n\n/minify\n\n</details>", ()),
        ("<pre>\n\n/minify\n</pre>", ()),
        # a fold that begins in a line of text shows as little
        ("look: <details>\n\n/minify\n\n</details>", ()),
        ("look: <details><summary>x</summary>\n\n/minify\n\n</details>\n\n/minify help", ("help",)),
        ("look: <details>\n/minify\n</details>\n\n/minify help", ("help",)),
        ("look: <details>x</details>\n\n/minify help", ("help",)),
        ("look: `<details>`\n\n/minify help", ("help",)),
        ("<div>\n<![x\n\n/minify", ()),
        ("<div>\n<![x</div>\n\n/minify", ()),
        ("a <![x b\n/minify", ("",)),
        ("[x]: /minify", ()),
        ("\ufeff\u200f/minify help", ("help",)),  # nobody sees what stands before it
        # right behind HTML or a list, as people write it, who leave no line empty
        ("<details>\n<summary>log</summary>\n\nx\n\n</details>\n/minify help", ("help",)),
        ("<details><summary>a</summary>x</details>\n/minify\n", ("",)),
        ("<br>\n/minify help\n\n/minify stop", ("help", "stop")),
        ("Seen with\n- torch `2.13`\n- cuda\n/minify help", ("help",)),
        ("1. a\n\n   b\n/minify help", ("help",)),
        ("- a\n  /minify", ()),
        ("- > a\n/minify", ()),
        ("| a |\n|---|\n/minify", ()),
        ("<details>\n- a\n/minify\n</details>", ()),
        # spoken of, and taken back
        *((f"<{name}>\n/minify\n</{name}>\n", ()) for name in ("s", "strike", "tt", "samp", "kbd", "q")),
        ("\u200b/minify", ()),
        ("\u2060/minify", ()),
        ("/\u200bminify", ()),
        ("~~never mind:\n/minify\nthat~~", ()),
        ("a\n\u200f\u200e/minify help \u200b", ("help",)),
        ("/minify\u200b", ("",)),
        ("/minify --test a\u202eb", ("--test a\u202eb",)),
        ("![/minify](x)", ()),
        ("![x\n/minify\n](x)", ()),
        ("<b title='\n/minify\n'>x</b>", ()),
        ("/minify a | b\n--- | ---", ()),  # the heading of a table
        ("[^1]\n\n[^1]: a\n\n    /minify", ()),
        ("a\n[^1]: b\n/minify", ()),  # goes on with a footnote that nothing refers to
        ("<table><tr><td>\n\n/minify\n\n</td></tr></table>", ()),
    ],
)
def test_lines(body: str, lines: tuple[str, ...]) -> None:
    assert command_lines(body) == lines


FOOTER = "—\nReply to this email directly, view it on GitHub, or unsubscribe.\nYou are receiving this because you commented.\n"


@pytest.mark.parametrize(
    "begins",
    [
        "________________________________\nFrom: stranger ***@***.***>\nSent: Friday\n",
        "Von: stranger <notifications@github.com>\n",
        "-----Original Message-----\nFrom: stranger\n",
        "On Fri, 27 Nov 2026, stranger ***@***.***> wrote:\n",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_mail_that_is_answered_is_not_asked_for_again(begins: str, end: str) -> None:
    """Some mail programs put it below the answer and quote nothing; GitHub's page folds it away."""
    original = f"{begins}\n/minify --stage aot\n\n```python\nimport torch\n```\n\n{LINK}\n\n{FOOTER}"
    for answer, lines in (("Thanks, I look at it.", ()), ("/minify stop", ("stop",))):
        body = f"{answer}\n\n{original}".replace("\n", end)
        assert command_lines(body) == lines
        assert code_blocks(body) == ()
        assert LINK not in shown_text(body)
    # where nothing tells its beginning, and where it is quoted
    assert command_lines(f"Thanks.\n\n{original.removeprefix(begins)}") == ()
    quoted = original.replace("\n", "\n> ")
    assert command_lines(f"/minify help\n\n{quoted}\n\n/minify") == ("help", "")


def test_blocks() -> None:
    body = "```Python title=x\r\na\r\n```\n\n~~~\nb\n~~~\n> ```python\n> quoted\n> ```\n\n- item\n  ```py\n  c\n  ```\n\n    indented\n"
    assert code_blocks(body) == (CodeBlock("python", "a\n"), CodeBlock("", "b\n"), CodeBlock("py", "c\n"))


@pytest.mark.parametrize("fence", ["```", "````", "~~~"])
@given(text=st.text(alphabet=st.characters(exclude_characters="`~\r\0", exclude_categories=["Cs"]), max_size=200))
def test_a_block_s_text_comes_out_as_it_went_in(fence: str, text: str) -> None:
    text = text.replace("\x0b", "").replace("\x0c", "")
    assert code_blocks(f"{fence}python\n{text}\n{fence}") == (CodeBlock("python", text + "\n"),)


@given(st.text(max_size=300))
def test_text_around_never_hides_a_command_of_its_own_paragraph_after_a_closed_fence(text: str) -> None:
    """Whatever stands in a fence, the command after it counts, and what is in it does not."""
    inner = text.replace("`", "'").replace("\r", "\n")
    assert command_lines(f"````\n{inner}\n/minify inside\n````\n\n/minify outside") == ("outside",)


@given(
    st.lists(
        st.sampled_from(["/minify a", "> ", "```", "<b>", "</b>", "<!--", "-->", "- ", "`", "\n", "\n\n", "text", "    ", "[", "]("]),
        max_size=30,
    )
)
def test_any_text_is_read(parts: list[str]) -> None:
    body = "".join(parts)
    assert len(command_lines(body)) <= parts.count("/minify a")
    assert all("\n" not in line for line in command_lines(body))
    code_blocks(body)


@pytest.mark.parametrize(
    "body",
    [
        "[" * 65_000,
        "*a " * 21_000,
        ">" * 65_000,
        "![](" * 16_000,
        "".join("`" * n + "a" for n in range(1, 360)),
        "```\nx\n```\n" * 5_000,
        "\0" * 65_000,
        "<a " * 21_000,
        "- " * 32_000,
        "\u202e" * 60_000,
        "/minify\n" * 8_000,
        "/minify " + " " * 60_000 + "x",
    ],
    ids=["brackets", "stars", "quotes", "images", "ticks", "fences", "nuls", "tags", "lists", "right to left", "commands", "blanks"],
)
def test_a_long_body_is_read_in_time(body: str) -> None:
    start = time.process_time()
    command_lines(body + "\n\n/minify")
    code_blocks(body)
    assert time.process_time() - start < 20


# What stays open is opened again in each paragraph, and looked through for each tag that ends something.
REOPENED = "".join(f"<b a{number}>" for number in range(3_000))
NESTED = "".join(f"<b a{number}><table><tr><td></b></td></tr></table>" for number in range(700))


@pytest.mark.parametrize(
    "text",
    [REOPENED + "x\n\n" * 11_000, NESTED + "\n\nx" * 10_000, "<div>" * 13_000, "".join(f"<a{n}>" for n in range(9_000)) + "<p>" * 4_000],
)
def test_elements_that_stay_open_are_read_in_time(text: str) -> None:
    started = time.process_time()
    assert code_blocks(text + "\n\n```\nx\n```") in ((), (CodeBlock("", "x\n"),))
    assert time.process_time() - started < 5


def test_a_page_is_read_through_many_elements_that_end() -> None:
    text = "<b>a</b> <i>b</i>\n" * 2_000 + "<table>\n" + "<tr><td><code>a</code></td></tr>\n" * 700 + "</table>\n\n```\nx\n```"
    assert code_blocks(text) == (CodeBlock("", "x\n"),)


def test_surrogates_are_read() -> None:
    assert command_lines("\ud800\n/minify \ud800") == ("\ud800",)
    assert shown_text("\ud800 a").strip() == "? a"


@pytest.mark.parametrize(
    "text",
    [
        "<!--" * 16_000,
        "<div>\n" + "<!-- " * 13_000,
        "<div " + "a=" * 32_000,
        "<div " + "a=b/" * 16_000,
        "<div>\n" + "<a b='<a b=\"" * 5_000,
        "[^" * 32_000,
    ],
)
def test_what_is_shown_is_found_in_time(text: str) -> None:
    started = time.process_time()
    shown_text(text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "body",
    [
        "[^1]: a\n    b\n{}\n",  # a footnote goes on, and nothing refers to it
        "[^1]: a\n\n    b\n{}\n",
        "see[^1]\n\n[^1]: {}\n\n<!--",  # footnotes stand at the end, within what is open there
        "[a]: {}(\n",  # whether that is an address is not agreed upon
        "[a\nb]: {}(\n",
        "[a]: b\n    ![x]({})\n",
        "a\n    | b |\n|---|\n| c | {}\n",  # a table, of which one column is shown
        "</div><!-- {} | a |\n|---|\n-->\n",  # HTML before it is a table
        "[</a> words]({})\n",
        "[^1]: [a]: /u\n{}\n",  # goes on with the footnote: what may be the definition of a link is text, to begin with
        "- [^1]: b\n\n      [a]: /u\n  {}\n",
        "10. x\n    [^1]: a\n   [^1]: b\n text {}\n",
        " > a\n<b>\n  1.\ntext <{}>\n",
        "[^1]: a\n<b>\n  * b\n    # c\n    text <{}>\n",
        " 10. x\n<b>\n    - <{}>\n",  # an element of HTML, where we see a text that goes on
    ],
)
def test_what_only_other_parsers_show_is_not_shown(body: str) -> None:
    """CommonMark knows no footnotes, for one; what GitHub makes of these no reader sees."""
    text = body.format(LINK)
    assert LINK not in shown_text(text)
    page = cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_UNSAFE)
    assert LINK not in re.sub(r"<!--.*?(?:-->|\Z)|<[^>]*>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("body", ["[x](https://example.org/?to={})", "https://example.org/#({}", "[a]: [b]({})\n    [a]:", "[x](/to/{})"])
def test_an_address_in_another_is_none(body: str) -> None:
    """Where it leads, a reader does not see."""
    assert LINK not in shown_text(body.format(LINK))


@pytest.mark.parametrize(
    "body",
    [
        "[https://github.com/user-attachments/files/1/fine.py]({})",
        "[**github.com/user-attachments/files/1/fine.py**]({})",
        "[see https://gist.github.com/a/0123456789abcdef0123]({})",
        "[https://example.org/fine]({})",
    ],
)
def test_a_link_that_leads_elsewhere_than_it_says_is_none(body: str) -> None:
    text = shown_text(body.format(LINK))
    assert LINK not in text
    # and what it says was not looked at by who followed it
    assert "fine" not in text
    assert "gist" not in text


SEEN = [
    "[https://github.com/user-attachments/files/12…]({0})",
    "[{0}]({0})",
    "[HTTPS://{0}.]({0})",
    "[a/b.py fails, see a.b]({})",
    "{}",
    "[x]({})",
    "{} <a href='x'>y</a>",
    "see[^1]\n\n[^1]: a\n\n{}",
    "| a |\n|---|\n| {} |\n",
    "[a]: b\n\n{}",
    "    {}",
]
SEEN += ["- a\n\n  {}", "[x][a]\n\n[a]: {}"]


@pytest.mark.parametrize("body", SEEN)
def test_what_a_reader_sees_is_shown(body: str) -> None:
    assert LINK in shown_text(body.format(LINK))
