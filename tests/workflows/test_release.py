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
CU126 = "ghcr.io/octo/torch-minify-gpu@sha256:" + "e" * 64


def script() -> ModuleType:
    loader = SourceFileLoader("release_script", str(ROOT / "scripts/release"))
    module = ModuleType(loader.name)
    module.__file__ = loader.path
    loader.exec_module(module)
    return module


release = script()
IMAGES = release.Images(LIGHT, GPU, CU126)


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
    release.pin(IMAGES, repository)
    commit(repository)
    release.check("HEAD~", "HEAD", IMAGES, repository)
    changed = git(repository, "diff", "--name-only", "HEAD~", "HEAD").split()
    assert sorted(changed) == sorted(release.NAMING)
    assert not [name for name in changed if name.startswith(".github/workflows/")]
    gpu, light = (load(repository / name)["runs"] for name in release.NAMING)
    assert (gpu["image"], light["image"]) == (f"docker://{GPU}", f"docker://{LIGHT}")
    # what the gate hands on, for the container of the job that minifies
    assert light["env"] == {"TORCH_MINIFY_GPU_IMAGE": GPU, "TORCH_MINIFY_CU126_IMAGE": CU126}


def test_a_release_of_a_release_writes_the_new_images(repository: Path) -> None:
    release.pin(IMAGES, repository)
    commit(repository)
    newer = release.Images(*(each.replace("aaaa", "cccc").replace("bbbb", "dddd").replace("eeee", "ffff") for each in IMAGES))
    release.pin(newer, repository)
    commit(repository)
    release.check("HEAD~", "HEAD", newer, repository)


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
    release.pin(IMAGES, repository)
    path = repository / name
    before = path.read_text(encoding="utf-8")
    path.write_text(change(before), encoding="utf-8")  # type: ignore[operator]
    assert path.read_text(encoding="utf-8") != before
    commit(repository)
    with pytest.raises(release.ReleaseError):
        release.check("HEAD~", "HEAD", IMAGES, repository)


def test_a_file_that_can_be_run_now_is_refused(repository: Path) -> None:
    release.pin(IMAGES, repository)
    (repository / "action.yml").chmod(0o755)
    commit(repository)
    with pytest.raises(release.ReleaseError, match="mode"):
        release.check("HEAD~", "HEAD", IMAGES, repository)


@pytest.mark.parametrize(
    "images",
    [
        ("sha256:1", GPU, CU126),
        (LIGHT, "latest", CU126),
        (LIGHT, GPU, "latest"),
        (LIGHT, LIGHT, CU126),
        (GPU, LIGHT, CU126),
        (LIGHT, GPU, GPU),
        ("", "", ""),
        (LIGHT + "\n  args: [x]", GPU, CU126),
    ],
)
def test_what_is_no_image_touches_no_file(repository: Path, images: tuple[str, str, str]) -> None:
    before = [(repository / name).read_bytes() for name in release.NAMING]
    with pytest.raises(release.ReleaseError):
        release.pin(release.Images(*images), repository)
    assert [(repository / name).read_bytes() for name in release.NAMING] == before


def test_the_image_of_a_fork_is_its_own() -> None:
    assert release.image("light", "1.2.3", "Somebody/Torch-Minify") == "ghcr.io/somebody/torch-minify-light:1.2.3"
    assert release.image("gpu-cu126", "1.2.3", "o/r") == release.image("gpu", "1.2.3", "o/r") + "-cu126"
    for target in release.TARGETS:
        name = release.image(target, "1.2.3", "Somebody/Torch-Minify").rpartition(":")[0]
        assert release.IMAGE.fullmatch(name + "@sha256:" + "0" * 64)


# the list of packages that a release makes, for another CUDA


def listed(*packages: str) -> str:
    """A list as uv writes it; `name==version` has the hash of its first letter, unless another letter stands behind."""
    rows = [(each.partition(" ")[0], each.partition(" ")[2] or each[0]) for each in packages]
    return "".join(f"{name} \\\n    --hash=sha256:{format(ord(letter), '064x')}\n" for name, letter in rows)


OURS = listed("numpy==2.5.5", "torch==2.13.0", "triton==3.8.0", "nvidia-nccl-cu13==2.30", "cuda-toolkit==13.0.2")
OTHER = ("numpy==2.5.5", "torch==2.13.0+cu126 x", "triton==3.8.0 x", "nvidia-nccl-cu12==2.29")


def test_a_list_for_another_cuda_has_the_same_packages() -> None:
    release.lists(OURS, listed(*OTHER))


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (("numpy==2.5.6", *OTHER[1:]), "numpy"),
        (("numpy==2.5.5 x", *OTHER[1:]), "files"),
        (OTHER[1:], "numpy"),
        ((*OTHER, "stranger==1"), "stranger"),
        ((*OTHER, "cuda==1"), "cuda"),
        ((OTHER[0], "torch==2.13.0", *OTHER[2:]), "torch is 2.13.0"),
        ((OTHER[0], "torch==2.13.1+cu126", *OTHER[2:]), "torch is"),
        ((OTHER[0], *OTHER[2:]), "torch is none"),
    ],
)
def test_a_list_with_anything_else_in_it_is_refused(other: tuple[str, ...], why: str) -> None:
    with pytest.raises(release.ReleaseError, match=why):
        release.lists(OURS, listed(*other))


@pytest.mark.parametrize("line", ["numpy==2.5.5", "numpy @ https://example.com/numpy.whl", "--extra-index-url https://example.com"])
def test_a_line_without_a_hash_is_refused(line: str) -> None:
    with pytest.raises(release.ReleaseError, match="no package with its hashes"):
        release.lists(OURS, listed(*OTHER[1:]) + line + "\n")


def test_the_lists_are_asked_for_alike() -> None:
    """docker/gpu-cu126.in is docker/gpu.in with another build of the same torch; and docker/gpu.txt can be read as such a list."""
    ours, other = ((ROOT / f"docker/{name}.in").read_text(encoding="utf-8") for name in ("gpu", "gpu-cu126"))
    torch = re.findall(r"(?m)^torch==.*$", ours)
    assert other == ours.replace(torch[0], f"{torch[0]}+cu126")
    text = (ROOT / "docker/gpu.txt").read_text(encoding="utf-8")
    with pytest.raises(release.ReleaseError, match=r"torch is 2\.13\.0, not"):
        release.lists(text, text)
    release.lists(text, text.replace(f"{torch[0]} ", f"{torch[0]}+cu126 "))


def test_every_target_is_built_and_pinned() -> None:
    jobs = workflow("release.yml")["jobs"]
    assert jobs["build"]["strategy"]["matrix"]["target"] == list(release.TARGETS)
    assert set(jobs["build"]["outputs"]) == set(release.TARGETS)
    for job in ("public", "tag"):
        assert {f"${{{{ needs.build.outputs.{target} }}}}" for target in release.TARGETS} <= set(jobs[job]["env"].values())
    names = [step.get("name", "") for step in jobs["build"]["steps"]]
    made = next(step for step in jobs["build"]["steps"] if "scripts/lock" in step.get("run", ""))
    assert made["if"] == "matrix.target == 'gpu-cu126'"
    assert "scripts/release lists docker/gpu.txt docker/gpu-cu126.txt" in made["run"]
    assert names.index(made["name"]) < names.index("Build")


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
            # not in an environment that --torch-version makes
            assert "--user" not in line, path.name
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


def test_the_documents_say_which_driver_needs_which_image() -> None:
    """What the lists are of: torch's own build, and that of docker/gpu-cu126.in."""
    page = (ROOT / "docs/github.md").read_text(encoding="utf-8")
    rows = page[page.index("### Which image") :].split("\n\n")[1].splitlines()[2:]
    torch = [re.findall(r"(?m)^torch==(.*)$", (ROOT / f"docker/{name}.in").read_text(encoding="utf-8"))[0] for name in ("gpu", "gpu-cu126")]
    cuda = re.findall(r"(?m)^nvidia-cuda-runtime==(\d+\.\d+)", (ROOT / "docker/gpu.txt").read_text(encoding="utf-8"))[0]
    assert f"{torch[0]}, CUDA {cuda}" in rows[0]
    major, minor = re.findall(r"cu(\d+)(\d)$", torch[1])[0]
    assert f"{torch[1]}, CUDA {major}.{minor}" in rows[1]
    tags = [release.image(target, "VERSION", "o/r").rpartition(":")[2] for target in ("gpu", "gpu-cu126")]
    assert all(f"`{tag}`" in row for tag, row in zip(tags, rows, strict=True))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = next(line for line in readme.splitlines() if line.startswith("| `image` |"))
    assert all(word in row and word in page for word in ("580", "525", "Turing", "cu126"))
