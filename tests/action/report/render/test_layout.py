from __future__ import annotations

from bot.action.report.render.layout import Block, fit, whole


def test_the_lowest_rank_is_served_first_and_all_stay_in_place() -> None:
    blocks = [whole((2,), "a" * 10), whole((1,), "b" * 10), whole((3,), "c" * 10)]
    assert fit(blocks, 100) == f"{'a' * 10}\n\n{'b' * 10}\n\n{'c' * 10}"
    assert fit(blocks, 22) == f"{'a' * 10}\n\n{'b' * 10}"
    assert fit(blocks, 21) == "b" * 10
    assert fit(blocks, 9) == ""


def test_a_shorter_form_is_taken_where_the_long_one_does_not_fit() -> None:
    block = whole((1,), "long text", "short")
    assert [fit([block], limit) for limit in (9, 8, 5, 4)] == ["long text", "short", "short", ""]


def test_what_is_left_is_what_the_others_leave() -> None:
    rooms: list[int] = []

    def within(room: int) -> str:
        rooms.append(room)
        return ""

    fit([Block((2,), within), whole((1,), "é")], 10)
    assert rooms == [10 - 2 - 2]
