from __future__ import annotations

import json
import os
import tracemalloc
import zipfile
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.minify import scrub
from bot.action.minify.handover import hand_over
from bot.action.minify.isolation import Account
from bot.action.minify.scrub import is_text, scrubbed
from bot.action.redaction import redact
from tests.action import canaries

SECRET = "ghs" + "_" + "a1B2" * 9
HOLDS = f"/home/bob/x.py {SECRET}"
# Any text but one that holds a secret or a home, as by chance it may.
HARMLESS = st.text().filter(lambda text: redact(text) == text)
SUFFIXES = [".py", ".txt", ".log", ".json", ".jsonl", ""]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_secrets_do_not_leave(suffix: str) -> None:
    content = json.dumps({"a": [HOLDS], HOLDS: 1}) if suffix == ".json" else HOLDS
    shown = scrubbed(PurePath(f"x{suffix}"), content.encode())
    assert SECRET.encode() not in shown
    assert b"bob" not in shown


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_secrets_do_not_leave_in_wide_characters(suffix: str, encoding: str) -> None:
    text = f'{{"a": "{HOLDS}"}}\n'
    shown = scrubbed(PurePath(f"x{suffix}"), text.encode(encoding))
    assert not any(SECRET.encode(each) in shown for each in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"))
    assert b"bob" not in shown.replace(b"\0", b"")
    harmless = "nothing of that sort\n".encode(encoding)
    assert scrubbed(PurePath(f"x{suffix}"), harmless) == harmless


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(st.binary(max_size=200) | HARMLESS.map(str.encode) | st.just(b'{"a": 1,\n "b": [2.50]}'))
def test_what_holds_none_is_left_byte_for_byte(suffix: str, content: bytes) -> None:
    assert scrubbed(PurePath(f"x{suffix}"), content) == content


@given(st.recursive(st.none() | st.booleans() | st.integers() | HARMLESS | st.just(HOLDS), lambda inner: st.lists(inner, max_size=3)))
def test_json_stays_json(value: object) -> None:
    shown = json.loads(scrubbed(PurePath("result.json"), json.dumps(value).encode()))
    assert json.dumps(shown) == json.dumps(value).replace(HOLDS, "~/x.py [secret]")


@given(st.lists(HARMLESS | st.just(HOLDS), max_size=5))
def test_lines_of_json_stay_so(values: list[str]) -> None:
    rows = "".join(json.dumps({"pass": value}) + "\n" for value in values)
    shown = scrubbed(PurePath("reduction.jsonl"), rows.encode()).decode()
    assert [json.loads(row)["pass"] for row in shown.split("\n")[:-1]] == [value.replace(HOLDS, "~/x.py [secret]") for value in values]


IN_JSON = [(text, value) for text, value in ((form.format(value), value) for form, value in canaries.SETTINGS.values()) if text[0] == '"']
PAIRS = [text for text, _ in IN_JSON if '": "' in text]


@pytest.mark.parametrize("said", [*PAIRS, '"WANDB_API_KEY": "0123456789abcdef0123"', '"X-API-Key": "0123456789abcdef0123"'])
def test_a_key_gives_its_value_away_in_json_too(said: str) -> None:
    name, value = json.loads(f"[{said.replace(': ', ', ')}]")
    for content in ({name: value, "b": 1}, [{"a": {name: value}}]):
        shown = scrubbed(PurePath("x.json"), json.dumps(content).encode()).decode()
        assert value not in shown
        assert json.dumps(json.loads(shown)) == json.dumps(content).replace(value, "[secret]")


@pytest.mark.parametrize(("said", "value"), [pair for pair in IN_JSON if pair[0] not in PAIRS])
def test_a_text_in_json_is_read_as_it_is_and_as_json(said: str, value: str) -> None:
    for content in (said, f'{{"log": {said}}}'):
        shown = scrubbed(PurePath("x.json"), content.encode()).decode()
        assert value not in shown
        assert json.dumps(json.loads(shown)) == json.dumps(json.loads(content)).replace(value, "[secret]")


def test_of_two_entries_with_one_name_the_first_is_searched_too() -> None:
    shown = scrubbed(PurePath("x.json"), f'{{"a": {json.dumps(HOLDS)}, "a": [NaN, 1]}}'.encode())
    assert redact(shown.decode()) == shown.decode()
    assert json.loads(shown)["a"][1] == 1


def test_deep_json_is_a_text() -> None:
    assert scrubbed(PurePath("x.json"), b"[" * 200_000 + HOLDS.encode()).endswith(b"~/x.py [secret]")


def test_tensors_are_not_searched() -> None:
    for name in ("exported_program.pt2", "original/pytorch/checkpoints/x.PT", "kernel.so"):
        assert not is_text(PurePath(name))
    # what else PyTorch's dumps hold (torch 2.13: a kernel in each of Triton's languages, graphs), and what programs write
    for name in (
        "log.txt",
        "kernel.ttir",
        "kernel.ptx",
        "graph.dot",
        "graph.svg",
        "kernel.cu",
        "run.sh",
        "x.env",
        "x.toml",
        "log.1",
        "x.so.log",
    ):
        assert is_text(PurePath("original", name))


def handed(source: Path, target: Path) -> list[str]:
    held = os.open(target, os.O_RDONLY)
    try:
        return hand_over(Account(), source, held)
    finally:
        os.close(held)


def test_what_is_copied_out_is_scrubbed(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "log.txt").write_text(HOLDS, encoding="utf-8")
    (tmp_path / "from" / "x.pt").write_text(HOLDS, encoding="utf-8")
    (tmp_path / "to").mkdir()
    assert handed(tmp_path / "from", tmp_path / "to") == []
    assert (tmp_path / "to" / "log.txt").read_text(encoding="utf-8") == "~/x.py [secret]"
    assert (tmp_path / "to" / "x.pt").read_text(encoding="utf-8") == HOLDS


def test_a_program_leaves_as_it_is_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    for name, text in (("good", "x"), ("bad", HOLDS)):
        with zipfile.ZipFile(tmp_path / "from" / f"{name}.pt2", "w") as archive:
            archive.writestr("model.json", text)
    (tmp_path / "to").mkdir()
    assert handed(tmp_path / "from", tmp_path / "to") == ["'bad.pt2': a secret or a personal path in it, or no archive"]
    assert (tmp_path / "to" / "good.pt2").read_bytes() == (tmp_path / "from" / "good.pt2").read_bytes()
    assert not (tmp_path / "to" / "bad.pt2").exists()


def test_a_json_bomb_takes_no_more_than_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of empty objects takes sixty times its text, once for each that is made of it."""
    monkeypatch.setattr(scrub, "_LONGEST_JSON", 1 << 16)
    bomb = b"[" + b"{}," * (1 << 16) + json.dumps(HOLDS).encode() + b"]"
    tracemalloc.start()
    try:
        shown = scrubbed(PurePath("x.json"), bomb)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert SECRET.encode() not in shown
    assert most < 12 * len(bomb)
