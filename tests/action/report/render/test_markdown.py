from __future__ import annotations

import pytest

from bot.action.report.render.markdown import cell, cell_lines, code, fence, fence_within, fold_within, link, table
from bot.action.report.render.text import size


@pytest.mark.parametrize(
    ("text", "span"), [("a", "`a`"), ("", "–"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("a\nb", "`a b`"), ("a``b`", "``` a``b` ```")]
)
def test_a_code_span_ends_where_it_should(text: str, span: str) -> None:
    assert code(text) == span


def test_a_fence_is_longer_than_what_is_in_it() -> None:
    assert fence("a\n") == "```text\na\n```"
    assert fence("````\nx", "python") == "`````python\n````\nx\n`````"


def test_what_no_fence_can_hold_is_html() -> None:
    long = "`" * 60
    assert fence(f"<a>&'{long}", "python") == f'<pre lang="python">\n&lt;a&gt;&amp;\'{long}\n</pre>'
    assert fence("`" * 59).startswith("`" * 60 + "text\n")


def test_a_long_row_of_backticks_is_cut_in_a_span() -> None:
    assert code("`" * 61 + " x") == f"{'`' * 61} {'`' * 60}… x {'`' * 61}"


@pytest.mark.parametrize("room", range(0, 3000, 97))
def test_html_keeps_whole_lines_within_its_room_too(room: int) -> None:
    text = "\n".join(f"line {index} <&>" for index in range(40)) + "\n" + "`" * 255
    found = fence_within(text, room)
    assert size(found) <= room
    if found and not found.endswith("</pre>"):
        shown = [line for line in found.split("\n") if line.startswith("line ")]
        assert found.endswith(f"\n\n{41 - len(shown)} more lines are in the run's files.")


@pytest.mark.parametrize("room", range(0, 200, 7))
def test_a_block_keeps_whole_lines_within_its_room(room: int) -> None:
    text = "\n".join(f"line {index}" for index in range(40))
    found = fence_within(text, room)
    assert size(found) <= room
    if found:
        shown = [line for line in found.split("\n") if line.startswith("line ")]
        assert shown == text.split("\n")[: len(shown)]
        assert found.endswith(f"\n\n{40 - len(shown)} more lines are in the run's files.")


def test_room_for_some_lines_is_used() -> None:
    assert "line 0" in fence_within("\n".join(f"line {index}" for index in range(40)), 120)


def test_a_fold_without_room_is_none() -> None:
    assert fold_within("More", "head", "text", 10) == ""
    assert fold_within("More", "", "", 1000) == "<details><summary>More</summary>\n\n```text\n\n```\n\n</details>"


def test_cells_are_escaped_and_bounded() -> None:
    assert cell("<b>&\n@x") == "<code>&lt;b&gt;&amp; @x</code>"
    assert cell_lines("a\n\nb\nc", 2) == "<code>a</code><br><code>b</code><br>…"
    assert cell_lines("\n") == "–"
    assert "\n\n" not in table([("a", cell_lines("x\n\n\ny"))])


def test_only_ordinary_addresses_are_links() -> None:
    assert link("words", "https://x/1") == "[words](https://x/1)"
    assert link("words", "https://x/)") == link("words", None) == "words"


def test_no_part_of_a_secret_is_in_a_cell_where_what_is_looked_at_ends() -> None:
    token = "gh" + "p_" + "a1B2" * 9
    for shown in range(1, 40):
        assert token[:9] not in cell_lines(f"{' ' * (19_999 - shown)}\n{token} b")
