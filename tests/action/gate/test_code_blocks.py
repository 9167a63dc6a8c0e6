"""Which block is the program."""

from __future__ import annotations

import re
import textwrap
import time

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given
from hypothesis import strategies as st

from bot.action.gate.code_blocks import find

COMPILES = "import torch\ntorch.compile(f)(x)\n"
TORCH = "import torch\nprint(torch.ones(2))\n"


def block(text: str, language: str = "python") -> str:
    return f"```{language}\n{text}```\n\n"


@pytest.mark.parametrize(
    ("body", "text", "note"),
    [
        (block(COMPILES), COMPILES, None),
        (block(COMPILES, ""), COMPILES, None),
        *(
            (block("x = 1\n", language), "x = 1\n", None)
            for language in ("ipython3", "{python}", "{.python", "python,linenos", "Python3.12")
        ),
        (
            block("Traceback:\n", "") + block(COMPILES),
            COMPILES,
            "the second of 2 code blocks, the only one that imports torch and compiles",
        ),
        (block(TORCH) + block(COMPILES), COMPILES, "the second of 2 code blocks, the only one that imports torch and compiles"),
        (block(COMPILES) * 3, COMPILES, "the first of 3 code blocks, the first of 3 that import torch and compile"),
        (block("x = 1\n") + block(TORCH), TORCH, "the second of 2 code blocks, the only one that imports torch"),
        (block("x = 1\n"), "x = 1\n", None),
        ("It says `<select>` and <object object at 0x7f00>.\n\n" + block(COMPILES), COMPILES, None),
        (block("import torch\ndef f(:\n"), "import torch\ndef f(:\n", None),
        (block("x\n", "text") * 11 + block(COMPILES), COMPILES, "the 12th of 12 code blocks, the only one that imports torch and compiles"),
    ],
)
def test_found(body: str, text: str, note: str | None) -> None:
    found = find(body)
    assert found is not None
    assert (found.text, found.note) == (text, note)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "text",
        "`import torch`",
        block("x = 1\n", ""),
        block(COMPILES, "text"),
        block(COMPILES, "diff"),
        block(COMPILES, "pytb"),
        block(COMPILES, "pyret"),
        "    import torch\n",
        block("\n"),
    ],
)
def test_none(body: str) -> None:
    assert find(body) is None


@pytest.mark.parametrize("body", [block("x = 1\n"), block("import torch\ndef f(:\n")])
def test_text_that_was_not_written_to_be_run_must_import_torch_and_parse(body: str) -> None:
    assert find(body, torch_only=True) is None


SESSION = ">>> import torch\n>>> def f(x):\n...     return x\n...\n>>> torch.compile(f)(x)\ntensor([1.])\n...and more\n"


@pytest.mark.parametrize("torch_only", [False, True])
@pytest.mark.parametrize("language", ["python", "pycon", ""])
def test_of_a_session_what_was_typed_is_the_program(language: str, torch_only: bool) -> None:
    found = find(block(SESSION, language), torch_only=torch_only)
    assert found is not None
    assert found.text == "import torch\ndef f(x):\n    return x\n\ntorch.compile(f)(x)\n"
    # the comment shows it, since the page shows something else
    assert (found.note, found.folded) == ("the code block, what is behind its prompts", True)


PARTS = st.sampled_from(
    ("```python\n", "```\n", "~~~\n", ">>> ", "... ", "In [1]: ", "$ python\n", "import torch\n", "x = 1\n", "    ", "> ", "<pre>", "\n")
)


@given(st.text(max_size=500) | st.lists(PARTS | st.text(max_size=3), max_size=20).map("".join))
def test_any_body(body: str) -> None:
    found, strict = find(body), find(body, torch_only=True)
    assert strict in (None, found)
    assert strict is None or "torch" in strict.text


def test_deep_nesting_is_no_program_but_no_fault() -> None:
    for code in ("(" * 20_000, "-" * 50_000 + "1"):
        body = block(f"import torch\n{code}\n")
        assert find(body, torch_only=True) is None
        assert find(body) is not None, "what was written to be run is run, and says what is wrong with it"


HIDDEN = "```python\nimport torch\nhidden = torch.compile\n```\n"


@pytest.mark.parametrize(
    "html",
    [
        "<ruby>\n<rp>\n\n{}\n</rp></ruby>\n",
        "<rp><p></rp>\n\n{}\n",  # the end of `rp` is ignored: `p` is open
        "<template>\n\n{}\n</template>\n",
        "It fails: <template>\n\n{}\n</template>\n",
        "<div title='\n\n{}\n'>\n",
        "</div title='\n\n{}\n'>\n",
        "<div\n\n{}\n>\n",
        "<div>\n<!--\n\n{}\n-->\n</div>\n",
        "<!-->\n\n{}\n-->\n",
        "<!-- --!> <div title=' -->\n\n{}\n'>\n",
        "<div a='<!--' b=\"--> ' >\n\n{}\n\">\n",
        "<div>\n<?x\n\n{}\n?>\n",
        "| a |\n|---|\n<br/>\n<b title='\n{}\n'>\n",  # for us a paragraph, which HTML of that sort does not interrupt
        "[^1]:\n<template>\n{}\n",  # no address of a link
        "[^1]:\n<br/>\n<b title='\n{}\n'>\n",
        "<div><script/x>\n\n{}\n</script></div>\n",
        "- a\n<br/>\n<b title='\n{}\n'>\n",  # goes on with the text of the list for us
        "| a |\n|---|\n===\n</b>\n<b title='\n{}\n'>\n",  # a heading for us
        "[a]: b\n\t<template>\n{}\n",
        "[a]: b\n'<template>\n[^1]:\n'\n{}\n",
        "\ufeff<!--\n\n{}\n-->\n",  # cmark-gfm passes over it, so that a comment begins the line
        # each is smaller than what is around it: there is nothing to see
        "<sub>" * 12 + "\n\n{}\n" + "</sub>" * 12,
        "It fails: <code><tt><samp><small><sup>\n\n{}\n</sup></small></samp></tt></code>\n",
        "<ruby>" * 6 + "<rt>\n\n{}\n" + "</ruby>" * 6,
        "<rt>" * 6 + "\n\n{}\n" + "</rt>" * 6,
        "<pre>" * 12 + "\n\n{}\n" + "</pre>" * 12,
        "<div><h6>" * 12 + "\n\n{}\n" + "</h6></div>" * 12,
        # from right to left, `1 - 2` is shown as `2 - 1`, and in `bdo` each word backwards
        "<div dir='rtl'>\n\n{}\n</div>\n",
        "<DIV align=left\nDIR=RTL>\n\n{}\n</DIV>\n",
        "<div dir = &#114;tl>\n\n{}\n</div>\n",
        "<p>\n<div/dir=rtl dir=ltr>\n\n{}\n</div>\n",
        '<div dir="auto">\n\u05d0\n\n{}\n</div>\n',
        "It fails: <bdo dir=rtl>\n\n{}\n</bdo>\n",
        "<bdo dir=rtl><p></bdo>\n\n{}\n",  # the end of `bdo` is ignored: `p` is open
        "<bdi>\n\n{}\n</bdi>\n",
        "- <ol title='dir=ltr' dir=rtl><li>\n\n{}\n</ol>\n",
    ],
)
def test_code_that_a_page_need_not_show_is_not_taken(html: str) -> None:
    """Readers see none of it, or nobody can be sure: another block may be what they saw."""
    assert find(html.format(HIDDEN)) is None


@pytest.mark.parametrize(
    ("before", "columns"),
    [
        ("- a\n[^x]: b\n", 4),  # a footnote ends the list, and nothing refers to it
        ("- a\n[^x]: b\n\n", 4),
        ("1. > q\n[^x]:\n", 4),
        ("- [ ] t\n[^x]: - b\n", 4),
        ("- - a\n  [^x]: b\n", 6),
        ("[a]: /u\n*\n  [^x]: - b\n", 4),  # what may be the definition of a link is text, which an empty item does not end
        ("*\n  \n\t<?\n", 2),  # a line of two blanks goes on with the item, and HTML begins in it
        ("*\n  \n    <p>\n", 2),
    ],
)
def test_code_that_only_other_parsers_show_is_not_taken(before: str, columns: int) -> None:
    code = HIDDEN.replace("hidden", "'<!--'\nhidden")
    body = before + textwrap.indent(code, " " * columns)
    assert find(body) is None
    page = cmarkgfm.github_flavored_markdown_to_html(body, options=Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_UNSAFE)
    assert "hidden" not in re.sub(r"<\?.*|<!--.*", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("before", ["[^x]: b\n\n", "[^x]: b\n", "- a\n[^x]: b\n\n", "[^x y]: b\n\n    c\n\n", "- [^x]\n\n"])
def test_code_beside_a_footnote_is_taken(before: str) -> None:
    found = find(before + HIDDEN)
    assert found is not None
    assert "hidden" in found.text


@pytest.mark.parametrize(
    "html",
    [
        "<!-- run it with --verbose -- and fill in -->\n\n{}",
        "<details><summary>program</summary>\n\n{}\n</details>\n",
        "<details>\n<summary>log</summary>\n<class 'x'> <function f at 0x7f> a < b, AT&T\n</details>\n\n{}",
        "std::vector<float> in <module>\n\n{}",
        "<img width='9' src=\"x\" alt=a>\n\n{}",
        "- `a<b` of <function f at 0x7f>\n- <b>c</b> d\n\n| a |\n|---|\n| <br> b |\n\n[^1]: a\n\n{}",
        "# a\n<class 'x'>\n{}",
        "<sub><sub>\n\n{}\n</sub></sub>",
        "<div dir='LTR' title='dir=rtl'>\n\n{}\n</div>",
        "<bdo dir=ltr dir=rtl>\n\n{}\n</bdo>",
        "<directory title=a/dir>\n\n{}\n",
        "<!-- dir=rtl -->\n<a href='/a dir=rtl'>a</a dir=rtl>\n\n{}\n",
        "<sub><sub><code>a</code></sub></sub> <ruby>b<rt>c<rt>d</ruby>\n" * 20 + "\n{}",
    ],
)
def test_code_beside_html_is_taken(html: str) -> None:
    found = find(html.format(HIDDEN))
    assert found is not None
    assert "hidden" in found.text


@pytest.mark.parametrize(
    ("html", "note"),
    [
        ("<details><summary>program</summary>\n\n{}\n</details>\n", "the code block in the closed fold “program”"),
        (
            "<details>\n<summary>the <b>log</b>\n &amp; more</summary>\n\n{}\n</details>\n",
            "the code block in the closed fold “the log & more”",
        ),
        ("<DETAILS class=x>\n\n{}\n</DETAILS>\n", "the code block in the closed fold “Details”"),
        ("See: <details><summary>*it*</summary>\n\n{}\n</details>\n", "the code block in the closed fold “it”"),
        (
            "<details><summary>a</summary>\n<details open><summary>b</summary>\n\n{}\n</details></details>\n",
            "the code block in the closed fold “a”",
        ),
        (
            "<details><summary>a</summary>\n\n```\nlog\n```\n</details>\n<details><summary>b</summary>\n\n{}\n",
            "the second of 2 code blocks, the only one that imports torch and compiles, in the closed fold “b”",
        ),
        # text for GitHub, which reads on
        ("<script>\n<details>\n</script>\n\n{}\n", "the code block in the closed fold “Details”"),
        # what is no block ends none
        ("<div><b><details>\n</b>\n\n{}\n", "the code block in the closed fold “Details”"),
        ("<div><table><td><details></div>\n\n{}\n", "the code block in the closed fold “Details”"),
        ("<div><details></div>\n\n{}\n", None),
        ("<textarea>\n<details>\n</textarea>\n\n{}\n", "the code block in the closed fold “Details”"),
        ("<details open><summary>program</summary>\n\n{}\n</details>\n", None),
        ("<details><summary>program</summary>\n</details>\n\n{}\n", None),
        ("`<details>` is open, and &lt;details>.\n\n{}\n", None),
        ("<details>" * 3 + "</details>" * 3 + "\n\n{}\n", None),
        ("- <details><summary>s</summary>\n\n  </details>\n\n{}\n", None),
    ],
)
def test_code_that_a_page_shows_on_a_click_is_taken_and_said_to_be(html: str, note: str | None) -> None:
    found = find(html.format(HIDDEN))
    assert found is not None
    assert (found.note, found.folded) == (note, note is not None)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x = 1" + " " * 300 + "; hidden()", "in line 2: ; hidden()"),
        ("\t" * 40 + "hidden()", "in line 2: hidden()"),
        ("x = 1" + "\u3000" * 90 + "# hidden", "in line 2: # hidden"),
        ("x = '" + "\u2800" * 90 + "'; hidden()", "in line 2: '; hidden()"),
        ("x = '" + "\u3000" * 45 + "'; hidden()", "in line 2: '; hidden()"),  # each takes two columns
        ("x = 1 # \u202e hidden", "in line 2: x = 1 # \\u202e hidden"),
        ("x = '\u200b\U000e0041'", "in line 2: x = '\\u200b\\U000e0041'"),
        ("x = 1 \u202e\ny = 1\nz = '\u200b'", "in line 2, and in 1 more line: x = 1 \\u202e"),
        ("x = 1" + " " * 300 + f"; {'y' * 60}; t = 'ghp_{'a1' * 20}'", f"in line 2: ; {'y' * 60}; t = '[secret]'"),
        ("x = 1" + " " * 300, None),
        ("x = '日本語' + 'é'" + " " * 20 + "# seen", None),
    ],
)
def test_code_that_is_out_of_sight_on_a_page_is_said_to_be(line: str, said: str | None) -> None:
    """A page scrolls sideways, and shows nothing of characters that take no room or turn the order of others."""
    found = find(f"```python\nimport torch\n{line}\ntorch.compile(f)\n```\n")
    assert found is not None
    assert found.note == (said and f"the code block, with what is out of sight {said}")
    assert found.folded is (said is not None)


def test_what_is_out_of_sight_is_looked_for_in_time() -> None:
    began = time.process_time()
    for text in (" " * 60_000, "\t" * 60_000, "a " * 30_000, (" " * 90 + "\n") * 600):
        find(f"```python\nimport torch\n{text}\n```\n")
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("# -*- coding: utf-7 -*-", "# -*- coding : utf-7 -*-"),
        (" \t# vim: set fileencoding=utf_7 coding:rot13 :", " \t# vim: set fileencoding =utf_7 coding :rot13 :"),
        ("# coding: unicode_escape", "# coding : unicode_escape"),
        ("# coding: utf-8", None),
        ("# -*- coding: UTF_8-sig -*-", None),
        ("# recoding", None),
        ("x = 1  # coding: utf-7", None),  # Python looks at lines that are comments alone
    ],
)
@pytest.mark.parametrize("above", ["", "#!/usr/bin/env python\n", "\n\n\n"])  # the first lines may not be in what is posted
def test_a_program_is_read_as_the_page_shows_it(line: str, read: str | None, above: str) -> None:
    """In another encoding a comment may hold code: that of the first ends here by `+AAo-`."""
    body = above + "{}\nimport torch  # see +AAo-print(1)\ntorch.compile\n"
    found = find(block(body.format(line)))
    assert found is not None
    assert found.text == body.format(read or line)
