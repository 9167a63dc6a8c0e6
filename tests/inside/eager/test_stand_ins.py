"""What takes the place of the compiler, called directly."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from bot.inside.eager.stand_ins import CompilerStub, EmptyStub, Exported  # noqa: E402
from bot.inside.protocol import Reached  # noqa: E402


@pytest.fixture
def stub() -> CompilerStub:
    return CompilerStub()


def test_calls_and_errors_are_counted(stub: CompilerStub) -> None:
    def fails(size: int) -> None:
        raise ValueError(f"no room for {size} of 3.5\nmore")

    assert stub.reached() == Reached()
    assert stub.compiled(len)([1]) == 1
    for size in (7, 8):
        with pytest.raises(ValueError, match="no room"):
            stub.compiled(fails)(size)
    assert stub.reached() == Reached(3, 2, 0, "ValueError: no room for 0 of 0")


def test_what_is_stored_is_found_and_its_file_goes(stub: CompilerStub, tmp_path: Path) -> None:
    module, path = torch.nn.ReLU(), tmp_path / "model.pt2"
    assert stub.store(module, path, ".pt2") == str(path)
    assert stub.load(path) is module
    assert stub.moves(path, tmp_path / "moved.pt2", copies=False)
    assert stub.load(tmp_path / "moved.pt2") is module
    assert stub.load(path) is None
    stub.clear()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_stays_as_it_is(stub: CompilerStub, tmp_path: Path) -> None:
    mine = tmp_path / "model.pt2"
    mine.write_bytes(b"mine")
    module = torch.nn.ReLU()
    stub.store(module, mine, ".pt2")
    assert stub.load(mine) is module
    stub.clear()
    assert mine.read_bytes() == b"mine"
    assert not stub.moves(tmp_path / "other", tmp_path / "moved", copies=False)


def test_without_a_name_it_is_in_a_directory_that_goes_or_in_the_given_file(stub: CompilerStub) -> None:
    module, buffer = torch.nn.ReLU(), io.BytesIO()
    path = stub.store(module, None, ".so")
    assert path.endswith(".so")
    assert stub.load(path) is module
    stub.clear()
    assert not os.path.exists(os.path.dirname(path))
    assert stub.store(module, buffer, ".pt2") is buffer
    buffer.seek(0)
    assert stub.load(buffer) is module


def test_a_graph_can_be_looked_at_and_is_empty(stub: CompilerStub) -> None:
    exported = stub.exported(torch.nn.ReLU(), (torch.ones(1),), None)
    assert isinstance(exported, Exported)
    assert isinstance(exported.graph.nodes[0].meta(), EmptyStub)
    assert list(exported.graph_signature.inputs) == []
    assert len(exported.graph) == 0
