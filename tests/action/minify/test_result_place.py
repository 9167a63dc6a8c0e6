from __future__ import annotations

from pathlib import Path

import pytest

from bot.action.console import InputError
from bot.action.minify.machine_report import FILE
from bot.action.minify.result_place import begin
from bot.action.minify.scrub import CHANGED
from bot.action.request_file import KEY_FILE
from bot.models.result import CONTENTS


@pytest.mark.parametrize("place", ["result", "result/0", "made/../result/0"])
def test_a_link_in_a_checkout_does_not_say_where_we_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """The container action's default is `result` in the workspace, which a step before may have filled from a commit."""
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "0").mkdir(parents=True)
    (tmp_path / "made").mkdir()
    for folder in (elsewhere, elsewhere / "0"):
        (folder / "result.json").write_text("somebody's")
    (tmp_path / "result").symlink_to(elsewhere)
    with pytest.raises(InputError, match="is a link or lies behind one"):
        begin(Path(place))
    assert [(folder / "result.json").read_text() for folder in (elsewhere, elsewhere / "0")] == ["somebody's"] * 2


def test_a_whole_path_is_its_owner_s_to_name(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    begin(tmp_path / "link" / "result")
    assert (tmp_path / "disk" / "result").is_dir()


@pytest.mark.parametrize("place", ["result", "result/0"])
def test_what_stands_in_its_place_is_an_input_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A file of a checkout, or a link without a target as Nix leaves one: no fault of ours."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "result").write_text("somebody's")
    with pytest.raises(InputError, match="cannot be made or emptied: "):
        begin(Path(place))
    assert (tmp_path / "result").read_text() == "somebody's"
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(InputError, match="cannot be made or emptied: File exists"):
        begin(tmp_path / "link")


def test_of_an_earlier_result_nothing_is_left(tmp_path: Path) -> None:
    for name in (*CONTENTS, FILE, CHANGED, KEY_FILE, "notes.txt"):
        (tmp_path / name).write_text("of another")
    begin(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
