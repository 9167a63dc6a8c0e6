from __future__ import annotations

import pytest

from bot.action.report.render.text import beginning, clean, cut, marker_line, number, one_line, safe_url, size


def test_what_terminals_and_github_obey_is_taken_out() -> None:
    assert clean("a\r\nb\rc\x00\x1b[31m\ud800") == "a\nb\nc\\x00\\x1b[31m\ufffd"
    assert clean("x = '\u202e'") == "x = '\\u202e'"
    assert clean("<!-- torch-minify:run-1 -->") == "<!- - torch-minify:run-1 -->"
    assert clean("tab\tand\nnewline") == "tab\tand\nnewline"


def test_one_line_is_bounded() -> None:
    assert one_line(" a\n\u2028 b ") == "a b"
    assert one_line("x" * 10, 10) == "x" * 10
    assert one_line("x" * 11, 10) == "x" * 9 + "…"


@pytest.mark.parametrize("most", [100, 300])
def test_no_part_of_a_secret_is_shown_where_what_is_looked_at_ends(most: int) -> None:
    token = "gh" + "p_" + "a1B2" * 9
    for blanks in range(4 * most + 2_900, 4 * most + 3_100):
        assert token[:9] not in one_line(f"{' ' * blanks}{token} b", most)


def test_a_text_that_is_cut_ends_with_a_word() -> None:
    cut = {2: "", 3: "one", 4: "one ", 5: "one ", 7: "one two", 8: "one two ", 11: "one two  ", 14: "one two  three"}
    assert {most: beginning("one two  three", most) for most in cut} == cut
    assert beginning("a " + "x" * 9_000, 5_000) == "a " + "x" * 4_998


@pytest.mark.parametrize(
    "marker", ["", "<!-- other:1 -->", "<!-- torch-minify:a --><b>", "<!-- torch-minify:a--b -->", "<!-- torch-minify:a\n -->"]
)
def test_what_is_no_marker(marker: str) -> None:
    with pytest.raises(ValueError, match="not a marker"):
        marker_line(marker)


def test_a_marker() -> None:
    assert marker_line("<!-- torch-minify:comment-4 run:7 -->") == "<!-- torch-minify:comment-4 run:7 -->"


def test_urls_in_which_markdown_could_hide() -> None:
    assert safe_url("https://github.com/o/r/issues/1#issuecomment-2") is not None
    for url in (None, "javascript:alert(1)", "https://x/a)b", "https://x/[a", "https://x/\n", "https://x/" + "a" * 1000):
        assert safe_url(url) is None


def test_numbers() -> None:
    assert [number(value) for value in (18292, 2.25, 1e12, -1e13, float("nan"))] == [
        "18,292", "2.2", "(no sensible number)", "(no sensible number)", "(no sensible number)",
    ]  # fmt: skip


def test_whole_lines_are_kept() -> None:
    assert cut("ab\ncd\nef", 8) == "ab\ncd\nef"
    assert cut("ab\ncd\nef", 7) == "ab\ncd"
    assert cut("abcdef", 3) == ""
    assert size("é") == 2
