"""A newcomer's walk through the README: from an empty repository to the first comment, on a commit that is no release.

What is copied is the README's own text; what is changed in it is what the README says to change. act runs it against GitHub's API in
memory. The one step that cannot be taken here is the installation on the runner, which tests/action/test_entry_point.py takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.action.github.emulator import OWNER, REPO, Emulator
from tests.workflows.act_harness import walk
from tests.workflows.test_act import red
from tests.workflows.workflow_files import ROOT, TOOLS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (TOOLS / "stamp").exists(), reason="scripts/setup-tools has not run")]

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMIT = "1234567890" * 4
FAILING = "```python\nimport torch\n# result: lowering\ntorch.compile(torch.relu)(torch.ones(2))\n```"


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Emulator]:
    with Emulator(tmp_path) as running:
        yield running


def copied(name: str) -> str:
    """The workflow of that name, as the README has it."""
    (block,) = (block for block in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL) if block.startswith(f"name: {name}\n"))
    return block


def by_commit(text: str) -> str:
    """As the README says for a commit that is no release: the full hash, and an image."""
    assert "`uses: OWNER/torch-minify/.github/workflows/minify.yml@HASH`" in README
    assert "`image: none`" in README
    text, count = re.subn(r"torch-minify/torch-minify(/\.github/workflows/minify\.yml)@v\d+", rf"{OWNER}/torch-minify\1@{COMMIT}", text)
    assert count == 1
    return text.replace("    with:\n", "    with:\n      image: none\n")


def test_from_an_empty_repository_to_the_first_comment(tmp_path: Path, forge: Emulator) -> None:
    text = by_commit(copied("minify on comment"))
    # the label of one's own runner: here the machine that act has
    text, count = re.subn(r"runner: gpu\b", "runner: ubuntu-latest", text)
    assert count == 1
    called = f"{OWNER}/torch-minify@{COMMIT}"

    # before anything else: is it set up?
    event = forge.commented(forge.issue("First of all."), "/minify doctor")
    ran = walk(tmp_path / "doctor", "issue_comment", event, forge.url, text, called)
    (answer,) = forge.ours(event["issue"]["number"])
    assert "### Set-up" in answer, ran.log
    assert "image: none" in answer
    assert "torch-minify doctor: exit status" in answer, ran.log

    # the first program
    event = forge.commented(forge.issue("It fails."), f"/minify\n\n{FAILING}")
    ran = walk(tmp_path / "first", "issue_comment", event, forge.url, text, called)
    assert ran.status == 0, ran.log
    (answer,) = forge.ours(event["issue"]["number"])
    assert "### Minimized" in answer
    assert "class Repro(torch.nn.Module)" in answer
    assert ran.result(0)["status"] == "minimized"
    assert ran.seen(0)["here"] == {"checked-out.txt": f"{REPO} {forge.ask('GET', f'/repos/{REPO}/commits/main')['sha']}\n"}


def test_the_second_file_answers_red_ci(tmp_path: Path, forge: Emulator) -> None:
    text = by_commit(copied("minify on red CI"))
    text, count = re.subn(r"runner: gpu\b", "runner: ubuntu-latest", text)
    assert count == 1
    # what the tests need: this repository has no package
    text, count = re.subn(r"setup: pip install -e \. # what your tests need", "setup: touch installed.txt", text)
    assert count == 1
    ran = walk(tmp_path / "act", "workflow_run", red(forge, 950, "pytest"), forge.url, text, f"{OWNER}/torch-minify@{COMMIT}")
    assert ran.status == 0, ran.log
    opened = [issue["number"] for issue in forge.ask("GET", f"/repos/{REPO}/issues?state=open&per_page=100")]
    assert len(opened) == 2
    for number in opened:
        (answer,) = forge.ours(number)
        assert "### Minimized" in answer
    assert sorted(ran.seen(0)["here"]) == ["checked-out.txt", "installed.txt"]


def test_without_an_image_the_newcomer_is_told(tmp_path: Path, forge: Emulator) -> None:
    """Who leaves the image out on a commit that is no release reads what to do in the comment, not in a log."""
    text = by_commit(copied("minify on comment")).replace("      image: none\n", "").replace("runner: gpu", "runner: ubuntu-latest")
    event = forge.commented(forge.issue("It fails."), f"/minify\n\n{FAILING}")
    ran = walk(tmp_path / "act", "issue_comment", event, forge.url, text, f"{OWNER}/torch-minify@{COMMIT}")
    (answer,) = forge.ours(event["issue"]["number"])
    assert "set the input `image`" in answer, ran.log
    assert not ran.job("minify 0")
