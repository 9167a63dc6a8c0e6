"""Programs that are attached. The addresses are those of GitHub's own attachments (docs.github.com, "Attaching files") and gists."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import time
from datetime import timedelta

import pytest

from bot.action.gate import attachments
from bot.action.gate.comment_event import Conversation
from bot.action.report.render.notes import source
from bot.models.request import Request
from tests.action.gate.memory import BLOCK, NOW, REPO, SCRIPT, Memory, asked, settings, zipped

FILE = "https://github.com/user-attachments/files/123456/"
GIST = "0123456789abcdef0123456789abcdef"
TRACE = 'V1123 06:18:00.123000 4711 torch/_inductor/compile_fx.py:1316] {"artifact": {"name": "fx_graph_runnable"}}\n\timport torch\n'

NOTEBOOK = json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "import torch"}]}).encode()


def tarred(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def lying(said: bytes) -> bytes:
    """An archive whose extended header says that."""
    entry = tarfile.TarInfo("x")
    entry.size, entry.type = len(said), tarfile.XHDTYPE
    return gzip.compress(entry.tobuf(tarfile.GNU_FORMAT) + said.ljust(512, b"\0"), mtime=0)  # a test is named by it


ARCHIVE = zipped({"x/README.txt": b"hi", "x/r.py": SCRIPT.encode()})


def only(api: Memory, comment: str, issue: str = "") -> Request:
    made = Conversation(asked(comment, issue_body=issue), settings(), api).outcome()
    assert made.status == "requests", made
    (request,) = made.requests
    return request


def refused(api: Memory, comment: str, issue: str = "") -> str:
    assert Conversation(asked(comment, issue_body=issue), settings(), api).outcome().status == "refused"
    return api.comments(REPO, 7)[-1].body


@pytest.mark.parametrize(
    ("address", "content", "text", "note"),
    [
        (FILE + "repro.py", SCRIPT.encode(), SCRIPT, "the attached file repro.py"),
        (FILE + "trace.log", TRACE.encode(), TRACE, "the attached file trace.log"),
        # as Windows writes them
        (FILE + "bom.py", SCRIPT.encode("utf-8-sig"), SCRIPT, "the attached file bom.py"),
        # what is decoded here is UTF-8 where it runs, whatever it says
        (FILE + "c.py", b"# coding: cp1252\n" + SCRIPT.encode(), "# coding : cp1252\n" + SCRIPT, "the attached file c.py"),
        (FILE + "log.txt", TRACE.encode("utf-16"), TRACE, "the attached file log.txt"),
        (FILE + "be.py", b"\xfe\xff" + SCRIPT.encode("utf-16-be"), SCRIPT, "the attached file be.py"),
        (f"https://github.com/{REPO}/files/99/a.zip", ARCHIVE, SCRIPT, "the attached file r.py in a.zip"),
        # what GitHub takes today was refused for years: people still add a suffix
        (FILE + "repro.py.txt", SCRIPT.encode(), SCRIPT, "the attached file repro.py.txt"),
        (FILE + "Untitled.json", NOTEBOOK, NOTEBOOK.decode(), "the attached file Untitled.json"),
        (FILE + "trace.log.gz", gzip.compress(TRACE.encode()), TRACE, "the attached file trace.log in trace.log.gz"),
        (FILE + "tl.tgz", tarred({"tl/index.html": b"x", "tl/raw.log": TRACE.encode()}), TRACE, "the attached file raw.log in tl.tgz"),
        (FILE + "a.tar.gz", tarred({"r.py": SCRIPT.encode()}), SCRIPT, "the attached file r.py in a.tar.gz"),
    ],
)  # fmt: skip
def test_a_file_of_the_issue(address: str, content: bytes, text: str, note: str) -> None:
    request = only(Memory(files={address: content}), "/minify", f"See [it]({address}).")
    assert (request.script, request.code.where, request.code.author, request.code.note) == (text, "issue", "reporter", note)
    assert (request.code.linked, request.code.trusted) == (True, False)
    assert "Code linked by `reporter`, who has no write permission here, in [the issue](" in source(request)


def test_a_file_on_an_enterprise_s_own_server() -> None:
    server = "https://acme.ghe.com"
    for address in (f"{server}/user-attachments/files/12/a.py", f"{server}/owner/name/files/12/a.py"):
        api = Memory(files={address: SCRIPT.encode()})
        (request,) = Conversation(asked(f"/minify\n\n[a.py]({address})"), settings(GITHUB_SERVER_URL=server), api).outcome().requests
        assert request.script == SCRIPT
        # another's server is not asked
        assert Conversation(asked(f"/minify\n\n[a.py]({address})"), settings(), api).outcome().status == "refused"


@pytest.mark.parametrize("more", [0, 1, 3])
def test_files_that_were_not_looked_at_are_not_passed_over_in_silence(more: int) -> None:
    count = attachments.MOST_FILES + more
    files = {f"{FILE}{number}.log": b"x" for number in range(count - 1)} | {f"{FILE}{count - 1}.py": SCRIPT.encode()}
    conversation = Conversation(asked("/minify", issue_body=" ".join(files)), settings(), api := Memory(files=files))
    assert conversation.outcome().status == ("refused" if more else "requests")
    assert (f"files are looked at, so {more} more were not." in api.comments(REPO, 7)[-1].body) is bool(more)


def test_a_gist_that_a_maintainer_links_is_still_somebody_s() -> None:
    api = Memory(gists={GIST: {"notes.md": "x", "fail.py": SCRIPT}})
    request = only(api, f"/minify\nhttps://gist.github.com/someone/{GIST}#file-fail-py", issue=BLOCK)
    assert (request.script, request.code.where) == (SCRIPT, "comment")
    # it is somebody's, but who links it may write here
    assert source(request).startswith("Code linked by `maintainer` in [the comment](")


@pytest.mark.parametrize(("comment", "issue"), [("/minify\n{}", ""), ("/minify", "See {}.")])
def test_a_gist_that_was_changed_after_the_request_is_not_what_was_looked_at(comment: str, issue: str) -> None:
    """A gist can be changed, what is attached as a file cannot. `updated_at` is by GitHub's clock, the dates of its commits are not."""
    address = f"https://gist.github.com/someone/{GIST}"
    for after in (-1, 0, 1):
        api = Memory(gists={GIST: {"fail.py": SCRIPT}}, gists_changed=NOW + timedelta(seconds=after))
        made = Conversation(asked(comment.format(address), issue_body=issue.format(address)), settings(), api).outcome()
        assert made.status == ("refused" if after >= 0 else "requests")
    assert f"The gist {GIST} was changed after the request, or in the same second." in api.comments(REPO, 7)[-1].body


@pytest.mark.parametrize("behind", ["/{}", "/{}#file-fail-py", "/raw/{}/fail.py"])
def test_of_a_gist_that_revision_counts_that_the_link_leads_to(behind: str) -> None:
    """A reader sees that one, whatever the gist has become since then."""
    revision, link = "ab" * 20, f"https://gist.github.com/someone/{GIST}"
    latest = {"fail.py": "import torch\nlatest = torch.compile\n"}
    api = Memory(gists={GIST: latest, f"{GIST}/{revision}": {"fail.py": SCRIPT}})
    assert only(api, "/minify", f"See {link}{behind.format(revision)}.").script == SCRIPT
    del api.gists[f"{GIST}/{revision}"]
    assert "There is no code to run" in refused(api, "/minify", f"See {link}{behind.format(revision)}.")
    assert only(api, "/minify", f"See {link}/raw/fail.py.").script == latest["fail.py"]


@pytest.mark.parametrize("behind", ["#file-b-c-py", "/raw/b_c.py", "/raw/{}/b_c.py"])
@pytest.mark.parametrize("at", ["gist.github.com", "gist.githubusercontent.com"])
def test_of_a_gist_the_file_comes_first_that_the_link_leads_to(at: str, behind: str) -> None:
    """The button "Raw" leads to gist.githubusercontent.com/OWNER/ID/raw/REVISION/FILE."""
    revision, files = "ab" * 20, {"a.py": "import torch\nfirst = torch.compile\n", "b_c.py": SCRIPT}
    api = Memory(gists={GIST: files, f"{GIST}/{revision}": files})
    assert only(api, f"/minify\nhttps://{at}/someone/{GIST}{behind.format(revision)}").script == SCRIPT


@pytest.mark.parametrize(
    ("link", "named"),
    [
        (FILE + "m.pt2", "`m.pt2` (no kind of file that is looked at)"),
        (FILE + "m.zip", "`m.zip` (nothing in it is a kind of file that is looked at)"),
        (f"https://gist.github.com/someone/{GIST}", f"`gist {GIST}` (nothing in it is a kind of file that is looked at)"),
        (f"https://github.com/{REPO}/blob/main/a/fail.py#L3-L9", "`fail.py` (of a repository: attach it, or paste it)"),
        (f"https://raw.githubusercontent.com/{REPO}/main/fail.py", "`fail.py` (of a repository: attach it, or paste it)"),
    ],
)
def test_a_link_that_cannot_be_taken_is_named(link: str, named: str) -> None:
    api = Memory(files={FILE + "m.zip": zipped({"m.pt2": b"x"})}, gists={GIST: {}})
    assert f"Linked, but not taken: {named}." in refused(api, f"/minify\n{link}")


@pytest.mark.parametrize("at", ["{}/gist/", "{}/gist/someone/", "https://gist.{}/someone/"])
def test_a_gist_of_an_enterprise_server(at: str) -> None:
    """The two forms are those of GitHub's documentation of subdomain isolation. Of github.com that server knows none."""
    server, api = "https://git.example.com", Memory(gists={GIST: {"fail.py": SCRIPT}})
    address = at.format(server.removeprefix("https://") if "//gist." in at else server)
    made = Conversation(asked(f"/minify\n{address}{GIST}"), settings(server_url=server), api).outcome()
    assert [request.script for request in made.requests] == [SCRIPT]
    made = Conversation(asked(f"/minify\nhttps://gist.github.com/someone/{GIST}"), settings(server_url=server), api).outcome()
    assert made.status == "refused"
    assert "it is not on this server" in api.comments(REPO, 7)[-1].body


def test_code_in_the_text_comes_before_what_is_attached() -> None:
    api = Memory(files={FILE + "a.py": b"import torch\n"})
    assert only(api, f"/minify\n{BLOCK}\n{FILE}a.py").script == SCRIPT
    assert only(api, "/minify", f"{FILE}a.py\n{BLOCK}").script == SCRIPT


@pytest.mark.parametrize(
    "body",
    [
        FILE + "gone.py",
        FILE + "setup.py",  # no torch in it
        FILE + "large.py",
        FILE + "bomb.zip",
        FILE + "broken.zip",
        FILE + "bomb.gz",
        FILE + "cut.gz",
        FILE + "bomb.tgz",
        FILE + "cut.tgz",
        FILE + "notes.txt",
        "https://github.com.evil.example/user-attachments/files/1/repro.py",
        "https://evil.example/?https://gist.github.com/x/" + GIST,
    ],
)  # fmt: skip
def test_what_is_no_program_or_too_large_or_elsewhere_is_not_taken(body: str) -> None:
    large = SCRIPT.encode() + b"#" * attachments.MOST_TEXT
    packed = gzip.compress(large)
    held = {
        "setup.py": b"x = 1\n",
        "large.py": large,
        "bomb.zip": zipped({"r.py": large * 8}),
        "broken.zip": b"PK\x03\x04",
        "bomb.gz": packed,
        "cut.gz": packed[:90],
    }
    held |= {
        "notes.txt": b"I import torch\nimport torch and so on\n",
        "bomb.tgz": tarred({"r.py": large}),
        "cut.tgz": tarred({"r.py": large})[:90],
    }
    api = Memory(files={FILE + name: content for name, content in held.items()} | {"https://evil.example/repro.py": SCRIPT.encode()})
    assert "There is no code to run" in refused(api, "/minify", body)


@pytest.mark.parametrize("empty", ["\n", " \n", "\t", "import\n"])
def test_a_long_file_of_nothing_is_looked_through_once(empty: str) -> None:
    """In time that grows with its length alone: the largest took hours."""
    text = empty * (attachments.MOST_TEXT // len(empty) - 1) + "x"
    started = time.process_time()
    assert "There is no code to run" in refused(Memory(files={FILE + "a.py": text.encode()}), "/minify", f"{FILE}a.py")
    assert time.process_time() - started < 5


HIDDEN, SEEN = f"https://gist.github.com/someone/{GIST}", FILE + "seen.py"


@pytest.mark.parametrize("where", ["issue", "comment"])
@pytest.mark.parametrize(
    "words",
    [
        "<!-- {} -->\n",
        "It fails <!-- {} --> here.",
        "[x]: {}\n",
        "[x]: /u '{}'\n",
        "It [](<{}>) fails.",
        "It [\u200b\u2800\u3164]({}) fails.",
        "![]({})",
        "![{}](https://github.com/x.png)",
        "[docs](https://pytorch.org '{}')",
        "[{}](https://pytorch.org)",
        "<a name='{}'></a>",
        "<a href='{}'></a>",
        "<div title='{}'>\n</div>\n",
        "```text {}\nx\n```\n",
        "[^1]: see {}\n",
        "[^1]: a\n\n    see {}\n",
        "| a |\n|---|\n| b | {} |\n",
        "> {}\n",
    ],
)
def test_a_link_that_a_reader_does_not_see_is_none(words: str, where: str) -> None:
    """Whoever asks has looked at the page: what its text does not show there is not what they ask for."""
    api = Memory(files={SEEN: SCRIPT.encode()}, gists={GIST: {"hidden.py": "import torch\nhidden = torch.compile\n"}})
    body = f"{words.format(HIDDEN)}\n\nSee [seen.py]({SEEN})."
    assert only(api, *(("/minify", body) if where == "issue" else (f"/minify\n\n{body}",))).script == SCRIPT


@pytest.mark.parametrize(
    "words", ["[hidden.py]({})", "[hidden.py][x]\n\n[x]: {}", "<{}>", "`{}`", "```\n{}\n```", "| a |\n|---|\n| {} |\n", "- {}"]
)
def test_a_link_that_a_reader_sees_is_one(words: str) -> None:
    api = Memory(gists={GIST: {"hidden.py": SCRIPT}})
    assert only(api, "/minify", words.format(HIDDEN)).script == SCRIPT


def test_only_so_many_files_are_asked_for() -> None:
    api = Memory(files={FILE + "99.py": SCRIPT.encode()})
    body = " ".join(f"{FILE}{number}.py" for number in range(attachments.MOST_FILES)) + f" {FILE}99.py"
    assert "There is no code to run" in refused(api, "/minify", body)


def test_a_traceback_alone_gets_words_on_what_to_attach() -> None:
    body = '```\nTraceback (most recent call last):\n  File "x.py", line 1\ntorch._inductor.exc.InductorError: x\n```'
    said = refused(Memory(), "/minify", body)
    assert "There is a traceback here, but not the program" in said
    assert "TORCH_TRACE" in said


@pytest.mark.parametrize(
    "shown",
    ["    Traceback (most recent call last):\n    x", "> > Traceback (most recent call last):", "E   Traceback (most recent call last):"],
)
def test_a_traceback_may_be_indented_or_quoted(shown: str) -> None:
    assert "There is a traceback here, but not the program" in refused(Memory(), "/minify", f"It fails:\n\n{shown}\n")


def test_a_traceback_in_an_attached_log() -> None:
    log = b"step 1\nTraceback (most recent call last):\nValueError: x\n"
    api = Memory(files={FILE + "err.log": log, FILE + "logs.zip": zipped({"a/err.txt": log})})
    for name in ("err.log", "logs.zip"):
        assert "There is a traceback here, but not the program" in refused(api, "/minify", FILE + name)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("trace.log", TRACE.encode() + b"#" * attachments.MOST_TEXT, "`trace.log` (more than 1 MiB)"),
        ("a.zip", zipped({"x/trace.log": TRACE.encode() * 9000}), "`trace.log in a.zip` (more than 1 MiB)"),
        ("a.zip", b"x" * (attachments.MOST_SENT + 1), "`a.zip` (more than 16 MiB)"),
        ("setup.py", b"x = 1\n", "`setup.py` (no program that imports torch, no log of `TORCH_TRACE`)"),
        ("a.zip", b"PK\x03\x04", "`a.zip` (it cannot be read)"),
        ("a.tgz", lying(b"9" * 25 + b" path=x\n"), "`a.tgz` (it cannot be read)"),
        ("gone.py", None, "`gone.py` (GitHub does not give it)"),
        ("login.py", b"\n<!DOCTYPE html>\n<title>Sign in</title>", "`login.py` (what came is a page of HTML)"),
    ],
)
def test_what_was_looked_at_in_vain_is_named(name: str, content: bytes | None, said: str) -> None:
    api = Memory(files={FILE + name: content} if content is not None else {})
    answer = refused(api, "/minify", f"See {FILE}{name}.")
    assert "There is no code to run" in answer
    assert said in answer


def test_texts_that_are_no_programs_are_not_parsed_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst take a second per MiB, and an archive of a megabyte has hundreds of them."""
    half = b"import torch\n("
    api = Memory(files={FILE + "a.zip": zipped({"1.txt": half, "2.txt": half, "3.txt": SCRIPT.encode(), "4.txt": b"a note"})})
    assert only(api, "/minify", FILE + "a.zip").script == SCRIPT
    monkeypatch.setattr(attachments, "MOST_PARSED", len(half))
    answer = refused(api, "/minify", FILE + "a.zip")
    assert "`1.txt in a.zip` (no program that imports torch, no log of `TORCH_TRACE`)" in answer
    assert "`2.txt in a.zip` (there is too much before it that may be a program: call it `.py`)" in answer
    assert "`3.txt in a.zip` (there is too much before it that may be a program: call it `.py`)" in answer
    assert "`4.txt in a.zip` (no program that imports torch, no log of `TORCH_TRACE`)" in answer
