"""A release: images from commit A; commit B is A with their digests in the two action files; the tags are on B."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

import bot
from tests.workflows.workflow_files import ROOT, load, workflow

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIGHT, GPU = "ghcr.io/octo/torch-minify-light@sha256:" + "a" * 64, "ghcr.io/octo/torch-minify-gpu@sha256:" + "b" * 64


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


def git(where: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid"]
    return subprocess.run(["git", "-C", str(where), *identity, *arguments], check=True, capture_output=True, text=True).stdout


def commit(where: Path) -> None:
    git(where, "add", "--all")
    git(where, "commit", "--quiet", "--message", "a commit")


def test_no_file_names_an_image_before_a_release() -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    files = [ROOT / name for name in listed.stdout.splitlines() if name.endswith((".yml", ".yaml", "Dockerfile"))]
    assert set(files) > {ROOT / name for name in release.NAMING}
    assert not [path.name for path in files if path.is_file() and release.IMAGE.search(path.read_text(encoding="utf-8"))]


def test_a_release_changes_no_workflow(repository: Path) -> None:
    """GitHub refuses such a push by the token of a workflow, whatever its permissions say."""
    release.pin(LIGHT, GPU, repository)
    commit(repository)
    release.check("HEAD~", "HEAD", LIGHT, GPU, repository)
    changed = git(repository, "diff", "--name-only", "HEAD~", "HEAD").split()
    assert sorted(changed) == sorted(release.NAMING)
    assert not [name for name in changed if name.startswith(".github/workflows/")]
    gpu, light = (load(repository / name)["runs"] for name in release.NAMING)
    assert (gpu["image"], light["image"]) == (f"docker://{GPU}", f"docker://{LIGHT}")
    # what the gate hands on, for the container of the job that minifies
    assert light["env"] == {"TORCH_MINIFY_GPU_IMAGE": GPU}


def test_a_release_of_a_release_writes_the_new_images(repository: Path) -> None:
    release.pin(LIGHT, GPU, repository)
    commit(repository)
    newer = [each.replace("aaaa", "cccc").replace("bbbb", "dddd") for each in (LIGHT, GPU)]
    release.pin(*newer, repository)
    commit(repository)
    release.check("HEAD~", "HEAD", *newer, repository)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("action.yml", lambda text: text.replace("default: 30m", "default: 31m")),
        ("action.yml", lambda text: text.replace("torch-minify-gpu@", "torch-minify-light@")),
        (".github/actions/light/action.yml", lambda text: text.replace("a" * 64, "c" * 64)),
        (
            ".github/actions/light/action.yml",
            lambda text: text.replace("    TORCH_MINIFY", "    LD_PRELOAD: x\n    TORCH_MINIFY"),
        ),
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
        release.check("HEAD~", "HEAD", LIGHT, GPU, repository)


def test_a_file_that_can_be_run_now_is_refused(repository: Path) -> None:
    release.pin(LIGHT, GPU, repository)
    (repository / "action.yml").chmod(0o755)
    commit(repository)
    with pytest.raises(release.ReleaseError, match="mode"):
        release.check("HEAD~", "HEAD", LIGHT, GPU, repository)


@pytest.mark.parametrize(
    "images", [("sha256:1", GPU), (LIGHT, "latest"), (LIGHT, LIGHT), (GPU, LIGHT), ("", ""), (LIGHT + "\n  args: [x]", GPU)]
)
def test_what_is_no_image_touches_no_file(repository: Path, images: tuple[str, str]) -> None:
    before = [(repository / name).read_bytes() for name in release.NAMING]
    with pytest.raises(release.ReleaseError):
        release.pin(*images, repository)
    assert [(repository / name).read_bytes() for name in release.NAMING] == before


def test_the_image_of_a_fork_is_its_own() -> None:
    assert release.image("light", "Somebody/Torch-Minify") == "ghcr.io/somebody/torch-minify-light"
    assert release.IMAGE.fullmatch(release.image("gpu", "Somebody/Torch-Minify") + "@sha256:" + "0" * 64)


@pytest.mark.parametrize(("version", "tags"), [("0.1.0", ("v0.1.0", "v0")), ("12.3.4", ("v12.3.4", "v12"))])
def test_the_tags(version: str, tags: tuple[str, str]) -> None:
    assert release.tags(version) == tags


@pytest.mark.parametrize("version", ["", "1", "1.2", "v1.2.3", "1.2.3 x", "01.2.3"])
def test_what_is_no_version_has_no_tags(version: str) -> None:
    with pytest.raises(release.ReleaseError):
        release.tags(version)


def test_the_documents_name_the_tags_that_a_release_makes() -> None:
    """Every `@v...` of ours, in workflows to copy and in `pip install` lines; and what is installed by name is on no index of ours."""
    made = set(release.tags(bot.__version__))
    found = 0
    for path in (ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"torch-minify/torch-minify[\w./-]*@(v[\w.]+)", text)
        found += len(named)
        assert set(named) <= made, path.name
        for line in re.findall(r"pip install ([^\n`)]*)", text):
            assert not re.search(r"(?:^|\s)['\"]?torch-minify(?:\[\w+\])?['\"]?(?:\s(?!@)|$)", line), f"{path.name}: pip install {line}"
    assert found >= 4


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
    push = lines[order[-1]]
    # tags alone: no branch moves, protected or not; the tag of a version is never moved, that of a major version is
    assert push.split()[4:] == ['"refs/tags/$tag"', '"+refs/tags/$major"']
    assert workflow("release.yml")["jobs"]["tag"]["needs"] == ["build", "public"]


def test_what_was_pushed_is_pulled_without_a_login() -> None:
    job = workflow("release.yml")["jobs"]["public"]
    assert job["permissions"] == {}
    text = json.dumps(job)
    assert "login" not in "".join(step["run"] for step in job["steps"]).replace("without a login", "")
    assert "secrets" not in text
    assert "token" not in text
    assert "needs.build.outputs.light" in text
    assert "needs.build.outputs.gpu" in text
