"""What takes the place of the compiler, called directly."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bot.inside.eager.stand_ins import CompilerStub, EmptyStub, Exported  # noqa: E402
from bot.inside.protocol import APART, Reached  # noqa: E402


@pytest.fixture
def stub(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> CompilerStub:
    monkeypatch.setenv("TORCH_MINIFY_STORED", str(tmp_path_factory.mktemp("stored")))
    return CompilerStub()


def test_calls_and_errors_are_counted(stub: CompilerStub) -> None:
    def fails(size: int) -> None:
        raise ValueError(f"no room for {size} of 3.5\nmore")

    assert stub.reached() == Reached()
    assert stub.compiled(len)([1]) == 1
    for size in (7, 8):
        with pytest.raises(ValueError, match="no room"):
            stub.compiled(fails)(size)
    assert stub.reached() == Reached(3, 2, 0, 0, "ValueError: no room for 0 of 0")


def test_what_is_stored_is_found_and_its_file_goes(stub: CompilerStub, tmp_path: Path) -> None:
    module, path = torch.nn.ReLU(), tmp_path / "model.pt2"
    assert stub.store(module, path, ".pt2") == str(path)
    assert isinstance(stub.load(path), torch.nn.ReLU)
    assert stub.moves(path, tmp_path / "moved.pt2", copies=False)
    assert isinstance(stub.load(tmp_path / "moved.pt2"), torch.nn.ReLU)
    assert stub.load(path) is None
    stub.clear()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_stays_as_it_is(stub: CompilerStub, tmp_path: Path) -> None:
    mine = tmp_path / "model.pt2"
    mine.write_bytes(b"mine")
    module = torch.nn.ReLU()
    stub.store(module, mine, ".pt2")
    assert isinstance(stub.load(mine), torch.nn.ReLU)
    stub.clear()
    assert mine.read_bytes() == b"mine"
    assert not stub.moves(tmp_path / "other", tmp_path / "moved", copies=False)


def test_without_a_name_it_is_in_a_directory_that_goes_or_in_the_given_file(stub: CompilerStub) -> None:
    module, buffer = torch.nn.ReLU(), io.BytesIO()
    path = stub.store(module, None, ".so")
    assert path.endswith(".so")
    assert isinstance(stub.load(path), torch.nn.ReLU)
    stub.clear()
    assert not os.path.exists(os.path.dirname(path))
    assert stub.store(module, buffer, ".pt2") is buffer
    buffer.seek(0)
    assert isinstance(stub.load(buffer), torch.nn.ReLU)


@pytest.mark.parametrize("exists", [False, True])
def test_what_another_process_stored_is_not_loaded(stub: CompilerStub, tmp_path: Path, exists: bool) -> None:
    """It is in that process's memory. With or without a file of the user's at its place, the one that started the other says so."""
    path, other = tmp_path / "model.pt2", CompilerStub()
    if exists:
        path.write_bytes(b"the user's")
    stub.store(torch.nn.ReLU(), path, ".pt2")
    assert isinstance(stub.load(path), torch.nn.ReLU)
    assert stub.reached() == Reached()
    assert other.load(tmp_path / "another.pt2") is None
    with pytest.raises(RuntimeError, match="another process"):
        other.load(path)
    assert stub.reached() == Reached(0, 0, 0, 1, APART)


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self) -> Any:
        self.count = self.count + 1
        return self.count.item()


def test_what_is_stored_and_each_that_is_loaded_has_a_state_of_its_own(stub: CompilerStub) -> None:
    module = Counter()
    package, program = stub.store(module, None, ".pt2"), stub.store(stub.exported(module, (), None), None, ".pt2")
    assert (module(), module()) == (1, 2)
    assert [stub.load(package)() for _ in range(2)] == [1, 1]
    loaded = stub.load(program)
    assert (loaded.module()(), loaded.module()(), stub.load(program).module()()) == (1, 2, 1)
    assert module() == 3


def test_what_cannot_be_copied_stays_itself(stub: CompilerStub) -> None:
    module = torch.nn.ReLU()
    module.generator = (number for number in range(3))
    assert stub.load(stub.store(module, None, ".pt2")) is module


def test_a_graph_that_is_looked_at_is_a_real_one(stub: CompilerStub) -> None:
    module, given = torch.nn.ReLU(), (torch.ones(1),)
    made: list[Any] = []
    exported = stub.exported(module, given, None, lambda: made.append(torch.export.export(module, given)) or made[-1])
    assert exported.module()(*given) == 1
    assert (made, stub.unmade) == ([], 0), "nobody looks"
    targets = [str(node.target) for node in exported.graph.nodes]
    assert "aten.relu.default" in targets
    for module_of in (exported.graph_module, exported.module(), exported.run_decompositions().module()):
        assert [str(node.target) for node in module_of.graph.nodes] == targets
    assert len(exported.graph_signature.user_inputs) == len(made) == 1
    assert isinstance(exported.graph_module(*given), EmptyStub), "nothing of it runs"
    assert stub.reached().unmade == 6


def test_a_graph_that_cannot_be_had_is_empty(stub: CompilerStub) -> None:
    def export() -> Any:
        raise KeyError("the bug")

    exported = stub.exported(torch.nn.ReLU(), (torch.ones(1),), None, export)
    assert isinstance(exported, Exported)
    assert isinstance(exported.graph.nodes[0].meta(), EmptyStub)
    assert list(exported.graph_signature.inputs) == []
    assert len(exported.graph) == 0
