"""What an account leaves, brought out by an archive: it may name and hold anything."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

import pytest

from bot.action.minify import handover
from bot.action.minify.handover import hand_over, receive
from bot.action.minify.isolation import Account
from bot.action.minify.result_set import TORN
from bot.action.minify.scrub import CHANGED
from bot.action.report.result_dir import Folder, section
from bot.models.result import Files, Result
from bot.sandbox import accounts
from bot.sandbox.files import remove
from tests.action.report import reports
from tests.sandbox.ways import SYSTEM_PYTHON

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "results" / "lowering"


@pytest.fixture
def target(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "target").mkdir()
    held = os.open(tmp_path / "target", os.O_RDONLY)
    yield held
    os.close(held)


def found(tmp_path: Path) -> dict[str, str]:
    place = tmp_path / "target"
    return {str(path.relative_to(place)): path.read_text() for path in sorted(place.rglob("*")) if path.is_file()}


def test_plain_files_alone_come_over(tmp_path: Path, target: int) -> None:
    source, secret = tmp_path / "source", tmp_path / "secret"
    (source / "original/work").mkdir(parents=True)
    secret.mkdir()
    (secret / "key").write_text("secret")
    (source / "result.json").write_text("{}")
    (source / "original/log.txt").write_text("log")
    (source / "original" / "work" / "cache").write_text("cache")
    (source / "link").symlink_to(secret / "key")
    (source / "folder").symlink_to(secret)
    os.mkfifo(source / "pipe")
    left = hand_over(Account(), source, target, Path("original/work"))
    assert found(tmp_path) == {"result.json": "{}", "original/log.txt": "log"}
    assert {line.split(":")[0] for line in left} == {"'link'", "'folder'", "'pipe'"}


def test_a_file_is_replaced_in_one_step(tmp_path: Path, target: int) -> None:
    (tmp_path / "source").mkdir()
    for text in ("first", "second"):
        (tmp_path / "source" / "repro.py").write_text(text)
        hand_over(Account(), tmp_path / "source", target)
    assert found(tmp_path) == {"repro.py": "second"}


def test_no_older_file_stays_beside_what_is_newer(tmp_path: Path, target: int) -> None:
    """A program that cannot be taken over any more, and a result that can: a full disk does the same."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as held:
        held.writestr("a", "a")
    name = "sub/exported_program.pt2"
    assert receive(archive((name, whole.getvalue()), ("result.json", b"{}")), target) == []
    left = receive(archive((name, b"no archive"), ("result.json", b"[]")), target)
    assert [line.partition(":")[0] for line in left] == [repr(name)]
    assert found(tmp_path) == {"result.json": "[]"}
    assert os.listdir(tmp_path / "target/sub") == []


def test_what_is_half_written_is_no_file_that_an_artifact_takes(tmp_path: Path, target: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The upload leaves hidden files out, and follows though our process was killed."""

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(handover, "holds_secret", killed)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "exported_program.pt2").write_bytes(b"ghp_" + b"0" * 36)
    with pytest.raises(KeyboardInterrupt):
        hand_over(Account(), tmp_path / "source", target)
    assert os.listdir(tmp_path / "target") == [".exported_program.pt2.new"]


def test_secrets_are_taken_out(tmp_path: Path, target: int) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "log.txt").write_text("ghp_" + "0" * 36)
    hand_over(Account(), tmp_path / "source", target)
    assert "ghp_000" not in found(tmp_path)["log.txt"]


def test_what_was_replaced_is_said(tmp_path: Path, target: int) -> None:
    """What is proven is the repro as it was: whoever reads another one is told."""
    shutil.copytree(RECORDED, tmp_path / "source")
    told = []
    for text in ("x = 1\n", "x = '/home/bob/x'\n", "x = 2\n"):
        (tmp_path / "source" / "repro.py").write_text(text)
        hand_over(Account(), tmp_path / "source", target)
        shown = section(reports.request(), Folder(tmp_path / "target"))
        told.append((shown.altered, shown.repro_altered))
    assert told == [(False, False), (True, True), (False, False)]


def test_who_has_a_name_of_ours_says_nothing(tmp_path: Path, target: int) -> None:
    for name in (CHANGED, f"{CHANGED}/x"):
        assert receive(archive((name, b"repro.py\n")), target) == [f"{name!r}: a name of ours"]
    assert os.listdir(tmp_path / "target") == []


def test_no_file_takes_the_place_of_one_that_waits(tmp_path: Path, target: int) -> None:
    """What the hash in result.json was compared with is what is handed on."""
    came = (("repro.py", NEW.encode()), (".repro.py.new", OLD.encode()), ("result.json", result_of(NEW).encode()))
    assert receive(archive(*came, ("original/.log.new", b"log")), target) == [
        f"{name!r}: a name of ours" for name in (".repro.py.new", "original/.log.new")
    ]
    assert found(tmp_path) == {"repro.py": NEW, "result.json": result_of(NEW)}


def archive(*entries: tuple[str, bytes], kinds: dict[str, bytes] | None = None) -> io.BytesIO:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w|") as made:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.type = (kinds or {}).get(name, tarfile.REGTYPE)
            entry.linkname = "/etc/passwd"
            made.addfile(entry, io.BytesIO(content))
    held.seek(0)
    return held


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out", 'a":b', "a\nb", "x" * 255, "/".join("a" * 20), "a*", "é", "a\\b"])
def test_names_that_lead_elsewhere_or_stop_an_upload_stay(tmp_path: Path, target: int, name: str) -> None:
    """What upload-artifact refuses: path-and-artifact-name-validation.ts of actions/toolkit."""
    left = receive(archive((name, b"x"), ("kept.txt", b"kept")), target)
    assert len(left) == 1
    assert found(tmp_path) == {"kept.txt": "kept"}
    assert not (tmp_path / "out").exists()


def test_names_hold_no_secret_and_no_personal_path(tmp_path: Path, target: int) -> None:
    """Names are shown by whoever lists an artifact, as texts are."""
    token = "gh" + "p_" + "a1B2" * 9
    entries = [(f"original/{token}.txt", b"x"), (f"{token}/a.txt", b"x"), ("original/torchinductor_carol/b.txt", b"b"), ("c.txt", b"c")]
    left = receive(archive(*entries), target)
    assert found(tmp_path) == {"original/torchinductor_user/b.txt": "b", "c.txt": "c"}
    assert len(left) == 2
    assert token not in "".join(left)


def test_links_and_devices_are_nothing(tmp_path: Path, target: int) -> None:
    kinds = {"a": tarfile.SYMTYPE, "b": tarfile.LNKTYPE, "c": tarfile.CHRTYPE, "d": tarfile.DIRTYPE, "e": tarfile.FIFOTYPE}
    assert len(receive(archive(*((name, b"") for name in kinds), kinds=kinds), target)) == 5
    assert os.listdir(tmp_path / "target") == []


def test_a_link_that_stands_in_the_way_is_not_followed(tmp_path: Path, target: int) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "target" / "deep").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "target" / "file").symlink_to(tmp_path / "elsewhere" / "file")
    (tmp_path / "target" / ".file.new").symlink_to(tmp_path / "elsewhere" / "new")
    left = receive(archive(("deep/a", b"x"), ("file", b"y")), target)
    assert len(left) == 1
    assert os.listdir(tmp_path / "elsewhere") == []
    assert (tmp_path / "target" / "file").read_text() == "y"


def test_no_more_than_so_much(tmp_path: Path, target: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "MOST_FILES", 2)
    assert len(receive(archive(*((name, b"1") for name in "abc")), target)) == 1
    assert sorted(found(tmp_path)) == ["a", "b"]
    monkeypatch.setattr(handover, "MOST_BYTES", 5)
    monkeypatch.setattr(handover, "MOST_FILES", 9)
    assert len(receive(archive(("d", b"123"), ("e", b"123"), ("f", b"12")), target)) == 1
    monkeypatch.setattr(handover, "LARGEST_FILE", 2)
    assert (
        len(
            receive(
                archive(
                    ("g", b"123"),
                ),
                target,
            )
        )
        == 1
    )
    monkeypatch.setattr(handover, "_MOST_ENTRIES", 1)
    assert receive(archive(("h", b"1"), ("i", b"1")), target) == ["more than 1 entries"]


@pytest.mark.parametrize(
    "headers",
    [
        {"size": "99999999999999"},
        {"size": "-99999999999999"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "../e", "GNU.sparse.realsize": "10"},
        {"GNU.sparse.map": "0,x"},
    ],
)
def test_a_header_that_lies_ends_the_archive(tmp_path: Path, target: int, headers: dict[str, str]) -> None:
    """A file of so many bytes, all of them holes, is read as long as one that has them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w|") as opened:
        for name, of_it in (("kept.txt", {}), ("odd", headers), ("later.txt", {})):
            entry = tarfile.TarInfo(name)
            entry.size, entry.pax_headers = 1, of_it
            opened.addfile(entry, io.BytesIO(b"x"))
    buffer.seek(0)
    receive(buffer, target)
    assert found(tmp_path)["kept.txt"] == "x"


def test_an_archive_that_breaks_off_brings_what_came(tmp_path: Path, target: int) -> None:
    whole = archive(("a", b"a" * 2000), ("b", b"b" * 2000)).getvalue()
    receive(io.BytesIO(whole[:4000]), target)
    assert (tmp_path / "target" / "a").read_text() == "a" * 2000


@pytest.mark.parametrize("kind", ["one that lies", "one in another"])
def test_a_header_that_cannot_be_read_is_said(tmp_path: Path, target: int, kind: str) -> None:
    """Nothing of an archive ends our process: then the job would be without a result."""
    entry = tarfile.TarInfo("x")
    if kind == "one that lies":
        said = b"9" * 25 + b" path=x\n"
        entry.type, entry.size, times = tarfile.XHDTYPE, len(said), 1
    else:
        said, times = b"a", 3000
        entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, 1
    header = (entry.tobuf(tarfile.GNU_FORMAT) + said.ljust(512, b"\0")) * times
    whole = archive(("kept.txt", b"x")).getvalue()[:1024] + header
    left = receive(io.BytesIO(whole), target)
    assert [said.startswith("what comes after: ") for said in left] == [True] * cannot_be_read(whole)
    assert found(tmp_path) == {"kept.txt": "x"}


class Endless(io.RawIOBase):
    """Begins with these bytes, and goes on with the same block for ever."""

    def __init__(self, begins: bytes, block: bytes) -> None:
        self.begins, self.block, self.taken = io.BytesIO(begins), block, 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0
        found = self.begins.read(size) or (self.block * (size // len(self.block) + 1))[:size]
        self.taken += len(found)
        assert self.taken < 1 << 20
        return found


def header(kind: bytes, size: int) -> bytes:
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = kind, size
    return entry.tobuf(tarfile.GNU_FORMAT)


SPARSE = bytearray(header(tarfile.GNUTYPE_SPARSE, 512))
SPARSE[482] = 1  # its map goes on in the next block
SPARSE[148:156] = b"%06o\0 " % (256 + sum(SPARSE[:148]) + sum(SPARSE[156:512]))
SPARSE_1_0 = tarfile.TarInfo("x")
SPARSE_1_0.size, SPARSE_1_0.pax_headers = 1 << 40, {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "x"}


@pytest.mark.parametrize(
    ("begins", "block"),
    [
        (header(tarfile.XHDTYPE, 8 << 30), b"a"),
        (header(tarfile.XGLTYPE, 8 << 30), b"a"),
        (header(tarfile.SOLARIS_XHDTYPE, 8 << 30), b"a"),
        (header(tarfile.GNUTYPE_LONGNAME, 8 << 30), b"a"),
        (header(tarfile.GNUTYPE_LONGLINK, 8 << 30), b"a"),
        (bytes(SPARSE), b"1"),
        (SPARSE_1_0.tobuf(tarfile.PAX_FORMAT), b"99999999\n"),
        (b"", header(tarfile.XGLTYPE, 512) + b"6 a=b\n".ljust(512, b"\0")),
        (b"", header(tarfile.GNUTYPE_LONGNAME, 512) + b"a".ljust(512, b"\0")),
    ],
    ids=["pax", "global", "solaris", "long name", "long link", "sparse", "sparse 1.0", "nested global", "nested long name"],
)
def test_a_header_that_declares_gigabytes_is_not_read(tmp_path: Path, target: int, begins: bytes, block: bytes) -> None:
    stream = Endless(archive(("kept.txt", b"x")).getvalue()[:1024] + begins, block)
    left = receive(cast(IO[bytes], stream), target)
    assert left == ["what comes after: its header cannot be read (OverflowError)"]
    assert found(tmp_path) == {"kept.txt": "x"}


def test_a_long_file_and_a_long_name_are_no_long_header(tmp_path: Path, target: int) -> None:
    names = ["/".join(["d" * 90] * 11 + [name]) for name in ("a.bin", "b.bin")]
    assert receive(archive(*((name, b"x" * 300_000) for name in names)), target) == []
    assert sorted(found(tmp_path)) == names


def cannot_be_read(data: bytes) -> bool:
    """Whether a header is beyond this Python's tarfile; one that has the mend of 2025 takes a length that lies for the archive's end."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r|") as opened:
            list(opened)
    except (OverflowError, RecursionError):
        return True
    except tarfile.TarError:
        pass
    return False


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own interpreter may lie where no other account reaches it: then nothing is handed over, and nothing is shown."""
    if not os.path.exists(SYSTEM_PYTHON):
        pytest.skip(f"needs {SYSTEM_PYTHON}")
    monkeypatch.setattr(handover.sys, "executable", SYSTEM_PYTHON)


@pytest.mark.usefixtures("reached")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as the container action has it")
def test_directories_exchanged_for_links_show_no_file_of_others(target: int) -> None:
    """The race of one who owns the directory against one who reads it as root."""
    number = accounts.draw({})
    assert number is not None
    place = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    os.chmod(place, 0o755)
    secret, source = place / "secret", place / "source"
    secret.mkdir(mode=0o700)
    (secret / "key.txt").write_text("canary")
    source.mkdir()
    for index in range(30):
        (source / f"d{index}").mkdir()
        (source / f"d{index}" / "key.txt").write_text("harmless")
    Account(number, number).chown(source)
    ended = threading.Event()

    def exchange() -> None:
        while not ended.is_set():
            for index in range(30):
                os.rename(source / f"d{index}", source / f"e{index}")
                os.symlink(secret, source / f"d{index}")
                os.unlink(source / f"d{index}")
                os.rename(source / f"e{index}", source / f"d{index}")

    racer = threading.Thread(target=exchange)
    racer.start()
    try:
        for _ in range(5):
            hand_over(Account(number, number), source, target)
            texts = {path.read_text() for path in Path(f"/proc/self/fd/{target}/").rglob("*.txt")}
            assert texts == {"harmless"}
    finally:
        ended.set()
        racer.join()
        subprocess.run(["rm", "-rf", str(place)], check=True)


@pytest.fixture
def altered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What the process that reads the files does first, such as to see them as they were a moment ago."""

    def alter(code: str) -> None:
        program = tmp_path / "python"
        run = "at = sys.argv.index('-c') + 1\ntext, sys.argv[:] = sys.argv[at], sys.argv[at:]\nexec(text)"
        program.write_text(f"#!{sys.executable} -IS\nimport os, sys\n{code}\n{run}\n")
        program.chmod(0o755)
        monkeypatch.setattr(handover.sys, "executable", str(program))

    return alter


def test_a_link_exchanged_for_a_directory_keeps_nothing_else_back(tmp_path: Path, target: int, altered: Callable[[str], None]) -> None:
    """It was a link when it was listed, and is none when it is opened."""
    altered("os.path.islink = lambda path: True")
    (tmp_path / "source" / "d").mkdir(parents=True)
    (tmp_path / "source" / "result.json").write_text("{}")
    assert hand_over(Account(), tmp_path / "source", target) == ["'d': no plain file"]
    assert found(tmp_path) == {"result.json": "{}"}


def test_files_that_could_not_be_read_are_no_silence(tmp_path: Path, target: int, altered: Callable[[str], None]) -> None:
    altered("sys.exit(3)")
    (tmp_path / "source").mkdir()
    assert hand_over(Account(), tmp_path / "source", target) == ["what comes after: reading it ended with exit status 3"]


def test_what_lies_too_deep_keeps_nothing_else_back(tmp_path: Path, target: int) -> None:
    """Deeper than Python calls itself, as a program's dump may be."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "e").mkdir()
    (source / "e" / "z.txt").write_text("z")
    back = os.open(".", os.O_RDONLY)
    os.chdir(source)
    for _ in range(1200):
        os.mkdir("d")
        os.chdir("d")
    os.fchdir(back)
    os.close(back)
    (source / Path(*"d" * 12) / "refused.txt").write_text("x")
    (source / Path(*"d" * 11) / "kept.txt").write_text("kept")
    left = hand_over(Account(), source, target)
    assert found(tmp_path) == {"e/z.txt": "z", f"{'d/' * 11}kept.txt": "kept"}
    assert [line.partition(": ")[2] for line in left] == ["a name that an artifact cannot have"]
    remove(source)


def test_texts_are_not_searched_without_end(tmp_path: Path, target: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made to be slow, half a GiB of them would keep the job for twenty minutes."""
    monkeypatch.setattr(handover, "MOST_TEXT", 5)
    left = receive(archive(("a.txt", b"123"), ("b.txt", b"123"), ("c.bin", b"123"), ("d.txt", b"12")), target)
    assert [line.partition(":")[0] for line in left] == ["'b.txt'"]
    assert sorted(found(tmp_path)) == ["a.txt", "c.bin", "d.txt"]


@pytest.mark.usefixtures("reached")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as the container action has it")
def test_what_runs_under_the_account_goes_on(tmp_path: Path, target: int) -> None:
    """A result is handed over while its engine runs: whatever ends with the process that brings the files, that does not."""
    number = accounts.draw({})
    assert number is not None
    account = Account(number, number)
    engine = account.start(["sleep", "60"], cwd=Path("/"), env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL)
    source = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    try:
        (source / "result.json").write_text("{}")
        account.chown(source)
        for _ in range(3):
            assert hand_over(account, source, target) == []
        assert found(tmp_path) == {"result.json": "{}"}
        with pytest.raises(subprocess.TimeoutExpired):
            engine.wait(1.0)
    finally:
        engine.end()
        shutil.rmtree(source)


def result_of(repro: str | None, *, named: bool = True) -> str:
    """A result whose repro has this text."""
    sha = {} if repro is None else {"repro.py": hashlib.sha256(repro.encode()).hexdigest()}
    return Result(status="error", files=Files(repro="repro.py" if sha else None, sha256=sha if named else None)).to_json()


OLD, NEW = "x = 1\n", "x = 2\n"


@pytest.mark.parametrize(
    ("came", "kept"),
    [
        # what is exchanged while it is looked at, or was when the engine died between two files: the set before it stays
        ({"repro.py": OLD, "result.json": result_of(NEW)}, None),
        ({"repro.py": NEW, "result.json": result_of(OLD)}, None),
        ({"result.json": result_of(NEW)}, None),
        ({"repro.py": NEW}, None),
        ({"repro.py": NEW, "result.json": result_of(NEW)}, {"repro.py", "result.json"}),
        # what a result does not name is not about it, or not yet
        ({"repro.py": NEW, "kernel.py": "k", "result.json": result_of(NEW)}, {"repro.py", "result.json"}),
        ({"repro.py": NEW, "result.json": result_of(None)}, {"result.json"}),
        # one that says nothing of its files
        ({"repro.py": NEW, "kernel.py": "k", "result.json": result_of(NEW, named=False)}, {"repro.py", "kernel.py", "result.json"}),
    ],
)
def test_files_that_do_not_belong_together_are_not_handed_on(
    tmp_path: Path, target: int, came: dict[str, str], kept: set[str] | None
) -> None:
    before = {"repro.py": OLD, "result.json": result_of(OLD)}
    receive(archive(*((name, text.encode()) for name, text in before.items())), target)
    left = receive(archive(("original/log.txt", b"log"), *((name, text.encode()) for name, text in came.items())), target)
    assert found(tmp_path) == {"original/log.txt": "log", **(before if kept is None else {name: came[name] for name in kept})}
    assert left == ([TORN] if kept is None else [])


def test_where_nothing_of_a_result_came_none_is_torn(tmp_path: Path, target: int) -> None:
    """The engine was not started, and the result that is there says why."""
    (tmp_path / "target/result.json").write_text(result_of(None))
    assert receive(archive(), target) == []
    assert receive(archive(("original/log.txt", b"log")), target) == []
    assert found(tmp_path) == {"original/log.txt": "log", "result.json": result_of(None)}


def test_a_look_in_the_middle_of_an_exchange_is_made_again(tmp_path: Path, target: int, altered: Callable[[str], None]) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "repro.py").write_text(OLD)
    (source / "result.json").write_text(result_of(OLD))
    # when the first was read, another repro comes, and a result that is about it
    exchange = [(str(source / "repro.py"), NEW), (str(source / "result.json"), result_of(NEW))]
    altered(
        f"""import tarfile
add = tarfile.TarFile.addfile
def late(*given):
    add(*given)
    for name, text in {exchange!r}:
        open(name, "w").write(text)
tarfile.TarFile.addfile = late"""
    )
    assert hand_over(Account(), source, target) == []
    assert found(tmp_path) == {"repro.py": NEW, "result.json": result_of(NEW)}


def test_what_was_replaced_is_said_of_the_files_that_stay(tmp_path: Path, target: int) -> None:
    home = "x = '/home/bob/x'\n"
    receive(archive(("repro.py", home.encode()), ("result.json", result_of(home).encode())), target)
    assert receive(archive(("repro.py", NEW.encode()), ("result.json", result_of(home).encode())), target) == [TORN]
    assert found(tmp_path)[CHANGED] == "repro.py\n"
    assert receive(archive(("repro.py", NEW.encode()), ("result.json", result_of(NEW).encode())), target) == []
    assert CHANGED not in found(tmp_path)


def test_of_a_directory_that_somebody_keeps_nothing_else_goes(tmp_path: Path, target: int) -> None:
    (tmp_path / "target/kernel.py").write_text("mine")
    assert receive(archive(("repro.py", OLD.encode()), ("result.json", result_of(OLD).encode())), target) == []
    assert (
        receive(
            archive(
                ("result.json", result_of(None).encode()),
            ),
            target,
        )
        == []
    )
    assert set(found(tmp_path)) == {"kernel.py", "result.json"}  # the repro was a result's


def test_where_it_cannot_be_said_what_was_replaced_the_set_before_it_stays(
    tmp_path: Path, target: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive(archive(("repro.py", OLD.encode()), ("result.json", result_of(OLD).encode())), target)
    usual = os.open

    def full(path: str, *given: object, **named: object) -> int:
        if path == CHANGED:
            raise OSError(28, "No space left on device")
        return usual(path, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", full)
    home = "x = '/home/bob/x'\n"
    assert receive(archive(("repro.py", home.encode()), ("result.json", result_of(home).encode())), target) == [
        "the result: No space left on device"
    ]
    assert found(tmp_path) == {"repro.py": OLD, "result.json": result_of(OLD)}


def test_what_was_replaced_beside_a_torn_result_is_said(tmp_path: Path, target: int) -> None:
    home = "x = '/home/bob/x'\n"
    receive(archive(("repro.py", home.encode()), ("result.json", result_of(home).encode())), target)
    log = ("original/log.txt", b"see /home/bob/secret/x.py\n")
    assert receive(archive(log, ("repro.py", NEW.encode()), ("result.json", result_of(home).encode())), target) == [TORN]
    assert found(tmp_path)[CHANGED].split() == ["original/log.txt", "repro.py"]
