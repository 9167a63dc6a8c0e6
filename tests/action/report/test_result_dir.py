from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.report.render.rendering import COMMENT_LIMIT, render
from bot.action.report.render.text import size
from bot.action.report.result_dir import Folder, UnreadableResult, folders, index_of, section
from tests.action.report import github_page, reports

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "results"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A good result, to be spoilt."""
    shutil.copytree(RECORDED / "lowering", tmp_path / "result-0")
    return Folder(tmp_path / "result-0")


def change(folder: Folder, **changes: object) -> None:
    path = folder.path / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def test_a_real_one(folder: Folder) -> None:
    found = section(reports.request(), folder)
    assert found.problem is None
    assert found.result is not None
    assert found.result.status == "minimized"
    assert found.repro == (folder.path / "repro.py").read_text(encoding="utf-8")
    assert found.exported_text is not None
    assert not found.altered
    by_name = {file.name: file for file in found.files}
    assert set(by_name) == {"exported_program.pt2", "repro.py", "result.json"}
    assert by_name["exported_program.pt2"].sha256 == "31229395077e8ee1c0ab9c609bc269929a097151205c846c478a3c2e0aeb6fcb"


@pytest.mark.parametrize(
    ("more", "altered"),
    [("", False), ("x = 1\r\n", False), ("x = '\u202e'\n", False), ("# /home/bob/x\n", True)],
)
def test_a_repro_in_which_something_was_replaced_is_not_the_one_that_was_verified(folder: Folder, more: str, altered: bool) -> None:
    with (folder.path / "repro.py").open("a", encoding="utf-8", newline="") as file:
        file.write(more)
    found = section(reports.request(), folder)
    assert found.repro_altered == altered
    assert ("shown with changes" in render(reports.report(found))) == altered


@pytest.mark.parametrize("name", ["result.json", "repro.py", "exported_program.pt2", "exported_program.txt"])
def test_links_are_not_followed(folder: Folder, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"schema": 1, "status": "error", "reason": "a secret"}), encoding="utf-8")
    (folder.path / name).unlink()
    (folder.path / name).symlink_to(secret)
    found = section(reports.request(), folder)
    assert "a secret" not in found.model_dump_json()
    assert name not in {file.name for file in found.files}
    assert (found.problem is not None) == (name == "result.json")


def test_a_result_of_a_newer_version_is_said_to_be(folder: Folder) -> None:
    """As with `image: none`, where torch-minify was installed from elsewhere than the workflow."""
    held = json.loads((folder.path / "result.json").read_text(encoding="utf-8"))
    for more, words in (
        ({"made_up": 1}, "does not know, made_up: was it written by a newer one"),
        ({"made_up": 1, "status": "?"}, "2 mistakes"),
    ):
        (folder.path / "result.json").write_text(json.dumps(held | more), encoding="utf-8")
        with pytest.raises(UnreadableResult, match=words):
            folder.result()


@pytest.mark.parametrize("name", ["result.json", "repro.py", "exported_program.pt2"])
def test_pipes_and_directories_are_no_files(folder: Folder, name: str) -> None:
    (folder.path / name).unlink()
    os.mkfifo(folder.path / name)
    assert name not in {file.name for file in section(reports.request(), folder).files}
    (folder.path / name).unlink()
    (folder.path / name).mkdir()
    assert name not in {file.name for file in section(reports.request(), folder).files}


def test_a_linked_directory_is_not_entered(folder: Folder, tmp_path: Path) -> None:
    link = tmp_path / "link-0"
    link.symlink_to(folder.path)
    with pytest.raises(UnreadableResult, match="cannot be opened"):
        Folder(link).result()


def test_a_directory_in_it_is_not_a_way_out(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "log.txt").write_text("Traceback (most recent call last):\nSecret: x\n", encoding="utf-8")
    (folder.path / "original").symlink_to(tmp_path / "outside")
    assert folder.log() == ""
    assert section(reports.request(), folder).traceback is None
    (folder.path / "original").unlink()
    (folder.path / "original").mkdir()
    (folder.path / "original" / "log.txt").symlink_to(tmp_path / "outside" / "log.txt")
    assert folder.log() == ""


def test_the_end_of_a_log_of_any_size_is_read(folder: Folder) -> None:
    (folder.path / "original").mkdir()
    with (folder.path / "original" / "log.txt").open("wb") as file:
        file.truncate(64 << 20)  # a sparse one
        file.seek(0, os.SEEK_END)
        file.write(b'\nTraceback (most recent call last):\n  File "/home/bob/a.py", line 1, in f\nRuntimeError: x\n')
    found = section(reports.request(), folder)
    assert found.traceback == 'Traceback (most recent call last):\n> File "~/a.py", line 1, in f\nRuntimeError: x'
    assert found.log is None
    assert found.altered


def test_where_it_did_not_fail_the_end_of_its_log_is_shown(folder: Folder) -> None:
    (folder.path / "original").mkdir()
    (folder.path / "original" / "log.txt").write_text("step 1\nstep 2\n", encoding="utf-8")
    assert section(reports.request(), folder).log is None
    change(folder, status="not_reproduced", signature=None)
    assert section(reports.request(), folder).log == "step 1\nstep 2"


def test_a_small_program_comes_with_it(folder: Folder) -> None:
    assert section(reports.request(), folder).program is not None
    (folder.path / "exported_program.pt2").write_bytes(b"PK but nothing else")
    assert section(reports.request(), folder).program is None


@pytest.mark.parametrize("name", ["result-0\n", "result-0\udcff", "x" * 255, "::error::", "-rf", "result-999"])
def test_odd_names_silence_nobody(name: str, tmp_path: Path) -> None:
    make(tmp_path / "handed", "torch-minify-result-0")
    (tmp_path / "handed" / name).mkdir()
    (tmp_path / "handed" / "result-1").symlink_to(tmp_path / "handed" / "result-1")
    found = folders([tmp_path / "handed", tmp_path / "handed" / "result-1"], ASKED)
    assert found[0].path.name == "torch-minify-result-0"
    assert section(reports.request(), found.get(1)).result is None


def test_devices_are_no_files(folder: Folder) -> None:
    (folder.path / "result.json").unlink()
    try:
        os.mknod(folder.path / "result.json", 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root may make a device")
    assert section(reports.request(), folder).problem == "result.json is no plain file"


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": 1, "status": "error", "versions": {' + ", ".join(f'"{number}": "x"' for number in range(40_000)) + "}}",
        '{"schema": 1, "status": "error", "sandbox": [' + ", ".join(['"x"'] * 200_000) + "]}",
        '{"schema": 1, "status": "error", "reason": "' + "`@x " * 240_000 + '"}',
        '{"schema": 1, "status": "error", "evidence": {"elsewhere": ['
        + ", ".join(['{"python": "x", "same": false, "said": "@y"}'] * 15_000)
        + "]}}",
        '{"schema": 1, "status": "error", "evidence": {"other_failures": [' + ", ".join(['"a"'] * 200_000) + "]}}",
    ],
    ids=["versions", "sandbox", "reason", "elsewhere", "failures"],
)
def test_a_result_of_many_small_things_is_a_comment_like_others(folder: Folder, text: str) -> None:
    (folder.path / "result.json").write_text(text, encoding="utf-8")
    began = time.process_time()
    found = section(reports.request(), folder)
    assert found.result is not None
    body = render(reports.report(found))
    assert time.process_time() - began < 20
    github_page.check(body, reports.MARKER)
    assert size(body) <= COMMENT_LIMIT


def test_sizes_are_bounded(folder: Folder) -> None:
    with (folder.path / "result.json").open("ab") as file:
        file.truncate((1 << 20) + 1)
    assert "more than" in str(section(reports.request(), folder).problem)
    with (folder.path / "repro.py").open("ab") as file:
        file.truncate((4 << 20) + 1)  # a sparse one
    assert folder.text("repro.py") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "[" * 200_000,
        '{"a":' * 100_000,
        '{"schema": 1}',
        '{"schema": 1, "status": "splendid"}',
        '{"schema": 1, "status": "minimized", "more": 1}',
        '{"schema": 2, "status": "error"}',
        '{"schema": 1, "status": "error", "timing": {"capture": "x"}}',
        '{"schema": 1, "status": "error", "reason": "\\ud800"}',
        '{"schema": 1, "status": "error", "reduction": {"queries": 1' + "0" * 5_000 + "}}",
        "\x00\xff",
    ],
    ids=lambda text: text[:24] or "empty",
)
def test_bad_json_is_said_and_nothing_else(folder: Folder, text: str) -> None:
    (folder.path / "result.json").write_text(text, encoding="latin-1")
    found = section(reports.request(), folder)
    assert found.result is None
    assert found.problem is not None
    assert found.problem.startswith("result.json")
    assert found.repro is None


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as path:
        (Path(path) / "result.json").write_bytes(content)
        assert section(reports.request(), Folder(Path(path))).result is None


def test_names_in_the_result_lead_nowhere(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret", encoding="utf-8")
    change(folder, files={"repro": "../secret", "exported_program": "/etc/passwd", "kernel": "../secret"})
    found = section(reports.request(), folder)
    assert "a secret" not in found.model_dump_json()
    assert found.repro is not None
    assert found.repro.startswith("# exception in inductor_lowering")


def test_secrets_do_not_come_through(folder: Folder) -> None:
    secret = "ghs" + "_" + "a1B2" * 9
    change(folder, reason=f"x {secret}", versions={"a": "/home/bob/x"})
    (folder.path / "repro.py").write_text(f"token = '{secret}'\n", encoding="utf-8")
    found = section(reports.request(), folder)
    assert found.altered
    assert secret not in found.model_dump_json()
    assert "bob" not in found.model_dump_json()


def test_text_that_is_no_utf8_is_replaced(folder: Folder) -> None:
    (folder.path / "repro.py").write_bytes(b"x = '\xff'\n")
    assert folder.text("repro.py") == "x = '\ufffd'\n"


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\0" * 4096, b"import torch\n" + b"\0" * 100])
def test_a_repro_that_was_lost_is_none(folder: Folder, content: bytes) -> None:
    """As a machine that goes down leaves a file: of its length, full of zeros, or empty. The result beside it may be whole."""
    (folder.path / "repro.py").write_bytes(content)
    said = render(reports.report(section(reports.request(), folder)))
    assert said.splitlines()[2].startswith("### Could not be minimized")
    assert "holds no repro that fails" in said
    assert "\n```python\n" not in said.partition("<details>")[0]


def test_nothing_came_back() -> None:
    assert section(reports.request(), None).problem is None
    assert section(reports.request(), Folder(Path("no-such-directory"))).problem is not None


# --- which directory answers which request

ASKED = [reports.request(id=f"comment-5-{number}") for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("0", 0),
        ("result-2", 2),
        ("torch-minify-result-1", 1),
        ("result-comment-5-1", 0),
        ("comment-5-3", 2),
        ("result-3", None),
        ("result", None),
        ("result2", None),
        ("torch-minify-request", None),
    ],
)
def test_the_number_or_the_id_ends_the_name(name: str, index: int | None) -> None:
    assert index_of(name, ASKED) == index


def make(root: Path, *names: str) -> list[Path]:
    for name in names:
        (root / name).mkdir(parents=True)
        (root / name / "result.json").write_text("{}", encoding="utf-8")
    return [root / name for name in names]


def test_directories_by_name_in_any_order(tmp_path: Path) -> None:
    second, first = make(tmp_path, "result-1", "result-0")
    assert folders([second, first], ASKED) == {0: Folder(first), 1: Folder(second)}


def test_directories_by_place_where_their_names_say_nothing(tmp_path: Path) -> None:
    paths = make(tmp_path, "a", "b", "c")
    assert folders(paths, ASKED) == {index: Folder(path) for index, path in enumerate(paths)}
    assert folders(paths[:2], ASKED) == {}


def test_one_directory_that_holds_them_all(tmp_path: Path) -> None:
    make(tmp_path / "handed", "torch-minify-result-0", "torch-minify-result-2", "torch-minify-request")
    (tmp_path / "handed" / "torch-minify-result-1").symlink_to("/")
    found = folders([tmp_path / "handed"], ASKED)
    assert {index: folder.path.name for index, folder in found.items()} == {0: "torch-minify-result-0", 2: "torch-minify-result-2"}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("made", [False, True])
def test_no_directory_came_back(tmp_path: Path, count: int, made: bool) -> None:
    """Of one request too: where the results should be is not its result."""
    if made:
        (tmp_path / "handed").mkdir()
    assert folders([tmp_path / "handed"], ASKED[:count]) == {}


def test_a_result_cannot_speak_for_another(tmp_path: Path) -> None:
    """A result directory without a result is not searched for directories that bear another's number."""
    make(tmp_path / "result-0", "x-1")
    assert folders([tmp_path / "result-0"], ASKED) == {0: Folder(tmp_path / "result-0")}
