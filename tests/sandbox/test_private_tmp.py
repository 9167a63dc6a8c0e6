"""What a process finds in a `/tmp` of its own: see tests/sandbox/test_attacks.py for what it does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.sandbox import private_tmp
from tests.sandbox.ways import Way, prepared


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(private_tmp, "PLACE", str(tmp_path))
    return tmp_path


def test_what_lies_in_something_shown_is_not_shown_again(place: Path) -> None:
    for name in ("a/b", "a-b", "c"):
        (place / name).mkdir(parents=True)
    (place / "a" / "file").touch()
    (place / "file").touch()
    (place / "link").symlink_to(place / "c")
    wanted = [str(place / name) for name in ("a-b", "a/file", "link", "a", "a/b", "file", "gone")]
    assert private_tmp.tops([*wanted, "/usr", str(place)]) == [str(place / name) for name in ("a", "a-b", "c", "file")]
    assert private_tmp.tops([]) == []


@pytest.fixture
def root() -> Iterator[Way]:
    with prepared("host-root") as way:
        if "private-tmp" not in way.run("").layers:
            pytest.skip("needs mounts")
        yield way


def test_a_program_is_found_by_its_name_through_links(root: Way) -> None:
    real = root.place / "real"
    real.mkdir()
    (real / "data.txt").write_text("read")
    (root.place / "link").symlink_to(real)
    (root.place / "other").symlink_to("link/data.txt")
    named = [str(root.place / "link" / "data.txt"), str(root.place / "other")]
    ran = root.run(f"print(*(open(path).read() for path in {named!r}))", readable=[str(real), *named])
    assert (ran.status, ran.text) == (0, "read read\n")


def test_links_of_links_and_those_beside_a_secret_are_there(root: Way) -> None:
    project, elsewhere = root.place / "project", root.place / "elsewhere"
    (project / ".git").mkdir(parents=True)
    (elsewhere / "v1").mkdir(parents=True)
    (elsewhere / "v1" / "a.txt").write_text("far")
    (elsewhere / "latest").symlink_to("v1")
    (project / "a.txt").symlink_to(elsewhere / "latest" / "a.txt")
    (project / "b").symlink_to("../elsewhere/latest")
    (project / "loop").symlink_to("loop")
    paths = [str(project / "a.txt"), str(project / "b" / "a.txt"), str(elsewhere / "latest" / "a.txt")]
    ran = root.run(f"print(*(open(path).read() for path in {paths!r}))", readable=[str(project), str(elsewhere / "v1")])
    assert (ran.status, ran.text) == (0, "far far far\n")
    assert {"private-tmp", "uid"} <= set(ran.layers)


def test_what_cannot_be_shown_costs_the_tmp_and_not_the_account(root: Way) -> None:
    token = root.place / "token"
    token.write_text("a name that is kept")
    ran = root.run("import os; print(os.getuid() != 0)", readable=[str(token)])
    assert ran.text == "True\n"
    assert "uid" in ran.layers


def test_the_way_to_what_is_shown_stays(root: Way) -> None:
    project = root.place / "a" / "project"
    project.mkdir(parents=True)
    (project / "data.txt").write_text("read")
    top = "/".join(str(project).split("/")[:3])
    code = f"""
import os
for attempt in (lambda: os.rename({top!r}, "/tmp/moved"), lambda: os.rename({str(project.parent)!r}, "/tmp/moved")):
    try:
        attempt()
        print("GOT")
    except OSError:
        pass
print(open({str(project / "data.txt")!r}).read())
"""
    ran = root.run(code, readable=[str(project)])
    assert (ran.status, ran.text) == (0, "read\n")


def test_a_secret_beside_the_program_is_not_there(root: Way) -> None:
    project = root.place / "project"
    (project / ".git").mkdir(parents=True)
    (project / "data.txt").write_text("read")
    code = f"import os; print(sorted(os.listdir({str(project)!r})), os.getcwd())"
    ran = root.run(code, readable=[str(project)], cwd=str(project))
    assert ran.text == f"['data.txt'] {project}\n"


def test_a_directory_with_too_many_files_leaves_tmp_as_it_was(root: Way) -> None:
    project = root.place / "project"
    (project / ".git").mkdir(parents=True)
    for number in range(1100):
        (project / f"{number}.txt").touch()
    ran = root.run(f"import os; print(os.path.exists({str(project)!r} + '/7.txt'))", readable=[str(project)])
    assert ran.text == "True\n"
    assert "private-tmp" not in ran.layers
    assert os.path.isdir(project)
