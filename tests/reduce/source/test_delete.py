"""Deletion of statements until no single one can go."""

from __future__ import annotations

from collections.abc import Sequence

from bot.reduce.source.delete import shrink


def test_what_is_not_needed_goes_and_nothing_is_asked_twice() -> None:
    asked: list[str] = []

    def ask(texts: Sequence[str]) -> int | None:
        asked.extend(texts)
        return next((i for i, text in enumerate(texts) if "a = 1" in text and "c(a)" in text), None)

    assert shrink("a = 1\nb = 2\nif b:\n    c(a)\n    d(b)\ne = 3\n", ask) == "a = 1\nif b:\n    c(a)\n"
    assert asked
    assert len(asked) == len(set(asked))


def test_where_nothing_can_go_the_text_stays() -> None:
    assert shrink("a = 1\nb = 2\n", lambda _texts: None) == "a = 1\nb = 2\n"
