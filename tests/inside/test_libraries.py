"""Libraries that the warm parent may import. Without torch: nothing here starts a device."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.inside import libraries, warm
from bot.inside.libraries import Unsafe, load


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory in which packages are installed."""
    root = tmp_path / "lib" / "site-packages"
    root.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(root))
    monkeypatch.setattr(warm, "runs_device", lambda: False)
    yield root
    for name in [name for name in sys.modules if name.startswith("probe_")]:
        del sys.modules[name]


def install(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent != root:
            (path.parent / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")


def test_modules_and_the_names_that_are_taken_out_of_them(site: Path) -> None:
    install(site, probe_one__models="", probe_one__layers="", probe_two="value = 1\n")
    load(["probe_one:models", "probe_two:value"])
    assert {"probe_one", "probe_one.models", "probe_two"} <= set(sys.modules)
    assert "probe_one.layers" not in sys.modules
    load(["probe_one.layers"])
    assert "probe_one.layers" in sys.modules


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("probe_none", "probe_none: Unsafe: probe_none is not installed here"),
        ("probe_raises", "probe_raises: ValueError: at import"),
        ("probe_fine:other", "probe_fine: ModuleNotFoundError: No module named 'probe_fine.other'"),
        ("json", "json: Unsafe: json is not installed here"),
    ],
)
def test_what_cannot_be_imported_is_said(site: Path, word: str, why: str) -> None:
    install(site, probe_raises="raise ValueError('at import')\n", probe_fine="")
    with pytest.raises(Unsafe) as caught:
        load([word])
    assert str(caught.value).startswith(why)


def test_what_lies_in_a_directory_of_the_users_is_no_library(tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "project", probe_own="raise AssertionError('it must not run')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "project"))
    with pytest.raises(Unsafe, match="probe_own is not installed here"):
        load(["probe_own"])
    assert "probe_own" not in sys.modules


THREAD = "import threading\nended = threading.Event()\nthreading.Thread(target=ended.wait, daemon=True).start()\n"


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
def test_threads_do_not_come_along(site: Path) -> None:
    install(site, probe_threads=THREAD)
    with pytest.raises(Unsafe, match="a library started threads"):
        load(["probe_threads"])
    sys.modules["probe_threads"].ended.set()


def test_nor_does_the_runtime_of_a_device(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, probe_device="")
    monkeypatch.setattr(warm, "runs_device", lambda: True)
    with pytest.raises(Unsafe, match="a library started a device's runtime"):
        load(["probe_device"])


def test_where_nobody_counts_threads_nothing_is_imported(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, probe_fine="")

    def refuses(_: str) -> list[str]:
        raise PermissionError

    monkeypatch.setattr(libraries.os, "listdir", refuses)
    with pytest.raises(Unsafe, match="nobody knows how many threads there are"):
        load(["probe_fine"])
    assert "probe_fine" not in sys.modules


ASKS = "import os\nfound = {name: os.environ.get(name) for name in ('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')}\n"


def test_one_thread_while_they_are_imported(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "4")
    install(site, probe_asks=ASKS)
    load(["probe_asks"])
    assert sys.modules["probe_asks"].found == {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "4"}
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    assert os.environ["MKL_NUM_THREADS"] == "4"
