"""The digest cycle: images from commit A; commit B changes their digests and nothing else; the tag is on B."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from tests.workflows.workflow_files import ROOT, workflow

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIGHT, GPU = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def script() -> ModuleType:
    loader = SourceFileLoader("release_script", str(ROOT / "scripts/release"))
    module = ModuleType(loader.name)
    module.__file__ = loader.path
    loader.exec_module(module)
    return module


release = script()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the files that name images, at commit A."""
    for name in (*release.NAMING, "pyproject.toml", "bot/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(where: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid"]
    subprocess.run(["git", "-C", str(where), *identity, *arguments], check=True, capture_output=True)


def commit(where: Path) -> None:
    git(where, "add", "--all")
    git(where, "commit", "--quiet", "--message", "a commit")


def test_every_file_with_an_image_is_known_to_the_script() -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    naming = {
        name
        for name in listed.stdout.splitlines()
        if name.endswith((".yml", ".yaml")) and (ROOT / name).is_file() and release.IMAGE.search((ROOT / name).read_text(encoding="utf-8"))
    }
    assert naming == set(release.NAMING)


def test_a_release(repository: Path) -> None:
    release.pin(LIGHT, GPU, repository)
    commit(repository)
    release.check("HEAD~", "HEAD", repository)
    text = "".join((repository / name).read_text(encoding="utf-8") for name in release.NAMING)
    assert set(release.DIGEST.findall(text)) == {LIGHT, GPU}
    assert {found[2] for found in release.IMAGE.finditer(text) if LIGHT in found[0]} == {"light"}
    assert {found[2] for found in release.IMAGE.finditer(text) if GPU in found[0]} == {"gpu"}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("action.yml", lambda text: text.replace("default: 30m", "default: 31m")),
        (".github/workflows/minify.yml", lambda text: text.replace("torch-minify-light@", "torch-minify-gpu@")),
        (".github/workflows/minify.yml", lambda text: text.replace("persist-credentials: false", "persist-credentials: true")),
        ("pyproject.toml", lambda text: text + "\n"),
    ],
)
def test_a_commit_that_changes_more_is_refused(repository: Path, name: str, change: object) -> None:
    release.pin(LIGHT, GPU, repository)
    path = repository / name
    before = path.read_text(encoding="utf-8")
    path.write_text(change(before), encoding="utf-8")  # type: ignore[operator]
    assert path.read_text(encoding="utf-8") != before
    commit(repository)
    with pytest.raises(release.ReleaseError):
        release.check("HEAD~", "HEAD", repository)


def test_a_file_that_can_be_run_now_is_refused(repository: Path) -> None:
    release.pin(LIGHT, GPU, repository)
    (repository / "action.yml").chmod(0o755)
    commit(repository)
    with pytest.raises(release.ReleaseError, match="mode"):
        release.check("HEAD~", "HEAD", repository)


@pytest.mark.parametrize("digests", [("sha256:1", GPU), (LIGHT, "latest"), (LIGHT, LIGHT), ("", "")])
def test_what_is_no_digest_touches_no_file(repository: Path, digests: tuple[str, str]) -> None:
    before = [(repository / name).read_bytes() for name in release.NAMING]
    with pytest.raises(release.ReleaseError):
        release.pin(*digests, repository)
    assert [(repository / name).read_bytes() for name in release.NAMING] == before


def test_the_version_is_compared(repository: Path) -> None:
    (repository / "bot/__init__.py").write_text('__version__ = "1.2.3"\n', encoding="utf-8")
    release.version("1.2.3", repository)
    with pytest.raises(release.ReleaseError, match=r"1\.2\.3"):
        release.version("1.2.4", repository)


def test_no_version_is_no_release(repository: Path) -> None:
    (repository / "bot/__init__.py").write_text("", encoding="utf-8")
    with pytest.raises(release.ReleaseError, match="nothing"):
        release.version("1.2.3", repository)


def test_the_metadata_of_the_package_says_the_one_version() -> None:
    """pyproject.toml has none of its own: the metadata is made from bot/__init__.py."""
    read = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in read["project"]
    assert read["project"]["dynamic"] == ["version"]
    module, _, name = read["tool"]["setuptools"]["dynamic"]["version"]["attr"].rpartition(".")
    assert re.fullmatch(r"\d+\.\d+\.\d+", getattr(importlib.import_module(module), name))


def test_the_workflow_checks_before_it_tags() -> None:
    run = next(step["run"] for step in workflow("release.yml")["jobs"]["tag"]["steps"] if "run" in step)
    lines = [line.strip() for line in run.splitlines()]
    order = [
        next(i for i, line in enumerate(lines) if line.startswith(word))
        for word in ("scripts/release pin", "git commit", "scripts/release check", "git tag", "git push --atomic")
    ]
    assert order == sorted(order)
    assert workflow("release.yml")["jobs"]["tag"]["needs"] == "build"
