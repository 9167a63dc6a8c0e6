"""The attacks of tests/sandbox, in real containers: all are held, and what a container cannot have is named.

Run by `scripts/try-container`. What came out is compared with docs/containers.json, which `scripts/try-container --record` writes.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.containers.job_container import LEAST, PLAIN, docker
from tests.workflows.workflow_files import ROOT

needs_images = pytest.mark.skipif(
    "TORCH_MINIFY_TRIED" not in os.environ, reason="scripts/try-container runs these, with the images that it builds"
)
TESTS = "torch-minify-tests:tried"
RECORD = ROOT / "docs/containers.json"
# How a container is started, by the name of the way: what Docker gives by itself, what docs/github.md leaves, and a user without rights.
CONTAINERS: dict[str, tuple[str, ...]] = {"container-root": (), "container-root-least": LEAST, "container-user": PLAIN}
FILES = (
    *("tests/sandbox/test_attacks.py", "tests/sandbox/test_accounts.py", "tests/sandbox/test_faults.py", "tests/sandbox/test_files.py"),
    *("tests/action/minify/test_handover.py", "tests/action/minify/test_child_process.py", "tests/action/minify/test_isolation.py"),
    *("tests/action/minify/test_minify.py", "tests/action/minify/test_scrub.py", "tests/action/test_canaries.py"),
    *("tests/action/minify/test_result_place.py", "tests/engine/capture/test_run.py", "tests/engine/capture/test_starts.py"),
    *("tests/engine/capture/test_local_modules.py", "tests/sandbox/test_what_stays.py", "tests/sandbox/test_paths.py"),
    *("tests/workers/test_pool_in_sandbox.py", "tests/workers/test_toolchain.py", "tests/sandbox/test_environment.py"),
)
LAYERS = "import pathlib, tempfile; from bot.sandbox.sandbox import Sandbox; print(*Sandbox(pathlib.Path(tempfile.mkdtemp())).layers)"
# About issues, comments, logs and inputs, which a hosted runner reads, and about the workflow itself.
ON_HOSTED_RUNNERS = {
    "test_rendering",
    "test_notes",
    "test_a_link_that_a_reader_does_not_see_is_none",
    "test_a_link_that_leads_elsewhere_than_it_says_is_none",
    "test_what_only_other_parsers_show_is_not_shown",
    "test_code_that_a_page_need_not_show_is_not_taken",
    "test_code_that_only_other_parsers_show_is_not_taken",
    "test_code_that_a_page_shows_on_a_click_is_taken_and_said_to_be",
    "test_code_that_is_out_of_sight_on_a_page_is_said_to_be",
    "test_a_mail_that_is_answered_is_not_asked_for_again",
    "test_no_part_of_a_secret_is_shown_where_what_is_looked_at_ends",
    "test_requests_say_what_ci_showed_without_its_secrets",
    "test_a_result_that_cannot_be_read_keeps_no_other_back",
    "test_a_member_beyond_all_files_is_unreadable_and_no_more",
    "test_one_artifact_does_not_take_all_the_time",
    "test_what_is_shown_is_found_in_time",
    "test_what_stands_very_often_in_a_line_is_read_in_time",
    "test_what_the_machine_knows_of_github_is_not_sent",
    "test_a_job_hands_on_no_result_of_another_request",
    "test_half_of_a_secret_in_an_input_is_not_told",
    "test_a_token_is_sent_as_it_is_or_not_at_all",
    "test_a_permission_is_that_of_the_account_and_not_of_its_name",
    "test_one_that_took_its_name_is_another",
}
# What a test may say for not running in a container: what it is about is not there, or cannot be held there, as SECURITY.md says.
ABSENT = re.compile(r"of a machine with a GPU|needs root|needs mounts|needs another account|only root's files|SECURITY\.md says so")


def attacks() -> set[str]:
    """The tests that SECURITY.md names in its table of attacks, but for those of hosted runners."""
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = page[page.index("## Attacks") : page.index("## Faults")]
    return set(re.findall(r"`(test_\w+)`", table)) - ON_HOSTED_RUNNERS


def outcomes(report: Path) -> dict[str, dict[str, Any]]:
    """Of each test in a JUnit `report`: how often it was held, what failed, and why it did not run."""
    found: dict[str, dict[str, Any]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        one = found.setdefault(case.attrib["name"].partition("[")[0], {"held": 0, "broken": [], "absent": []})
        bad = [child for child in case if child.tag in ("failure", "error")]
        skipped = [child.attrib.get("message", "") for child in case if child.tag == "skipped"]
        one["broken"] += [child.attrib.get("message", "")[:300] for child in bad]
        one["absent"] += skipped
        one["held"] += not bad and not skipped
    return found


@needs_images
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", CONTAINERS)
def test_every_attack_is_held(way: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o777)
    place = ("--network", "none", "--init", "--volume", f"{ROOT}:/src:ro", "--workdir", "/src", "--volume", f"{out}:/out")
    variables = (
        "--tmpfs",
        "/home:mode=1777",
        "--env",
        f"TORCH_MINIFY_WAY={way}",
        "--env",
        "HOME=/home",
        "--env",
        "PYTHONDONTWRITEBYTECODE=1",
    )
    words = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=900", "--junitxml=/out/report.xml", *FILES]
    ran = docker(
        "run", "--rm", *place, *variables, *CONTAINERS[way], "--entrypoint", words[0], TESTS, *words[1:], check=False, timeout=1700
    )
    found = outcomes(out / "report.xml")
    broken = {name: one["broken"] for name, one in found.items() if one["broken"]}
    assert not broken, ran.stdout[-8000:]
    assert ran.returncode == 0, ran.stdout[-8000:]
    assert attacks() <= set(found), attacks() - set(found)
    not_run = {name: one["absent"] for name, one in found.items() if name in attacks() and not one["held"]}
    assert all(ABSENT.search(why) for reasons in not_run.values() for why in reasons), not_run
    asked = docker(
        "run", "--rm", "--network", "none", *CONTAINERS[way], "--env", "HOME=/tmp", "--entrypoint", "python", TESTS, "-I", "-c", LAYERS
    )
    layers = asked.stdout.split()
    record(way, layers, {name: found[name]["held"] for name in sorted(attacks())}, not_run)


def record(way: str, layers: list[str], held: dict[str, int], not_run: dict[str, list[str]]) -> None:
    """Write down how it went, where that is wanted."""
    if "TORCH_MINIFY_RECORD" not in os.environ:
        return
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    engine = docker("version", "--format", "{{.Server.Version}}").stdout.strip()
    facts = {"engine": f"Docker {engine}", "kernel": ".".join(os.uname().release.split(".")[:2])}
    reasons = {name: sorted({why.rpartition(": ")[2] for why in given}) for name, given in sorted(not_run.items())}
    known[way] = {**facts, "options": list(CONTAINERS[way]), "layers": sorted(layers), "held": held, "not_run": reasons}
    RECORD.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n", encoding="utf-8")


def test_the_record_is_of_these_containers_and_of_tests_that_are_there() -> None:
    known = json.loads(RECORD.read_text(encoding="utf-8"))
    assert set(known) == set(CONTAINERS)
    for way, told in known.items():
        assert told["options"] == list(CONTAINERS[way])
        assert set(told["held"]) == attacks(), f"{way}: `scripts/try-container --record` writes it anew"
        assert {name for name, times in told["held"].items() if not times} == set(told["not_run"])


def test_security_md_says_what_the_record_says() -> None:
    """Its table of the containers: a row for each, with how many were held, which could not be tried, which layers there are none of."""
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    every = {"uid", "no-capabilities", "no-new-privs", "landlock", "landlock-signals", "private-tmp", "seccomp", "rlimits", "no-network"}
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert record
    for way, told in record.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{way}` |"))
        _, _, held, not_run, lacks = (cell.strip() for cell in row.strip("|").split("|"))
        tried = len(told["held"]) - len(told["not_run"])
        assert held == f"{tried} of {tried}"
        assert set(re.findall(r"`(test_\w+)`", not_run)) == set(told["not_run"])
        assert set(re.findall(r"`([\w-]+)`", lacks)) == every - set(told["layers"])
