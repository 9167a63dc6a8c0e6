"""Which of the graphs in an input are run, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.engine.inputs.graphs import MOST_LISTED, MOST_TOGETHER, Held, chosen, taken
from bot.engine.inputs.taken import DumpedGraph, NotUnderstood, Place
from tests.engine.inputs.test_dump import AOT, AOTI, DYNAMO


def graph(name: str, text: str = AOT, **more: Any) -> DumpedGraph:
    return DumpedGraph(name, text, **more)


def held(*graphs: DumpedGraph, **more: Any) -> Held:
    return Held("trace", "a log", graphs, **more)


def place(tmp_path: Path, **more: Any) -> Place:
    return Place(tmp_path / "log", tmp_path, **more)


@pytest.mark.parametrize(
    ("graphs", "wanted", "found"),
    [
        ([graph("0/0"), graph("1/0")], None, ["0/0", "1/0"]),
        ([graph("0/0"), graph("1/0", failed="no"), graph("2/0", failed="no")], None, ["1/0"]),
        ([graph("0/0"), graph("1/0", unfinished=True), graph("2/0", failed="no")], None, ["2/0"]),
        ([graph("0/0"), graph("1/0", unfinished=True), graph("2/0", unfinished=True)], None, ["1/0"]),
        ([graph("0/0", failed="no"), graph("1/0")], "1/0", ["1/0"]),
        # a compilation with several graphs: the last one
        ([graph("0/0.0"), graph("0/0.1"), graph("1/0")], "0/0", ["0/0.1"]),
        ([graph("0/0.0"), graph("0/0.1")], "0/0.0", ["0/0.0"]),
        ([graph("0/0")], "7/0", []),
    ],
)
def test_the_graph_that_failed_or_was_asked_for(graphs: list[DumpedGraph], wanted: str | None, found: list[str]) -> None:
    assert [each.name for each in chosen(graphs, wanted)] == found


def test_a_graph_that_is_not_there(tmp_path: Path) -> None:
    graphs = [graph(f"{number}/0") for number in range(MOST_LISTED + 3)]
    with pytest.raises(NotUnderstood, match=r"a log without a graph '77/0'; it has 0/0 \(compiled\), .*, 11/0 \(compiled\) and 3 more$"):
        taken(held(*graphs), place(tmp_path, graph="77/0"))


def test_one_graph(tmp_path: Path) -> None:
    found = taken(held(graph("0/0", failed="KeyError: 1")), place(tmp_path, torch="2.13.0+cu126"))
    assert found.detail == "a log dumped by torch 2.13.0+cpu, one graph: KeyError: 1, 1 ops"
    # another build of the same torch is no other torch
    assert found.notes == ("its inputs were not saved: random ones of the same shapes are used",)
    assert (found.taken_as, found.read, found.wrong_numbers) == ("trace", (), False)


def test_one_of_several(tmp_path: Path) -> None:
    found = taken(held(graph("0/0"), graph("1/0", unfinished=True), notes=("a note",)), place(tmp_path, torch="2.15.0"))
    assert found.detail == "a log dumped by torch 2.13.0+cpu, 2 graphs: 1/0 did not end, 1 ops"
    assert found.notes == (
        "a note",
        "its graphs: 0/0 (compiled), 1/0 (did not end); --graph chooses one",
        "it was dumped by torch 2.13.0+cpu, and here is torch 2.15.0: it may fail in another way, or not at all",
        "its inputs were not saved: random ones of the same shapes are used",
    )


def test_all_are_run_one_after_the_other(tmp_path: Path) -> None:
    found = taken(held(graph("0/0"), graph("1/0")), place(tmp_path))
    assert found.detail.endswith("2 graphs, 2 ops")
    assert found.text is not None
    assert ("# graph 0/0" in found.text, "# graph 1/0" in found.text) == (True, True)


def test_one_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    found = taken(held(graph("0/0", "no dump"), graph("1/0")), place(tmp_path))
    assert any(note.startswith("graph 0/0 was left out: ") for note in found.notes)
    assert found.text is not None
    assert "# graph" not in found.text
    with pytest.raises(NotUnderstood):
        taken(held(graph("0/0", "no dump")), place(tmp_path))


def test_of_very_many_the_first_are_run(tmp_path: Path) -> None:
    found = taken(held(*(graph(f"{number}/0") for number in range(MOST_TOGETHER + 1))), place(tmp_path))
    assert f"only the first {MOST_TOGETHER} of {MOST_TOGETHER + 1} graphs are run; --graph chooses another one" in found.notes
    assert found.text is not None
    assert found.text.count("# graph ") == MOST_TOGETHER


@pytest.mark.parametrize("where", ["", "checkpoints", ".."])
def test_recorded_inputs_are_found_around_the_script(tmp_path: Path, where: str) -> None:
    script = tmp_path / "run" / "minifier"
    (script / where / "storages").mkdir(parents=True)
    found = taken(held(graph("0/0", beside=script)), place(tmp_path))
    assert found.read == ((script / where).resolve(),)
    assert found.text is not None
    assert repr(str((script / where).resolve())) in found.text
    assert not any("were not saved" in note for note in found.notes)


def test_an_exported_program_lies_beside_its_script(tmp_path: Path) -> None:
    with pytest.raises(NotUnderstood, match="which is neither beside it nor where it was"):
        taken(held(graph("0", AOTI, beside=tmp_path)), place(tmp_path))
    with pytest.raises(NotUnderstood, match="which is neither beside it nor where it was"):  # a name that no file system takes
        taken(held(graph("0", AOTI.replace("/checkpoints/", f"/{'a' * 5000}/"), beside=tmp_path)), place(tmp_path))
    (tmp_path / "exported_program.pt2").write_bytes(b"x")
    renamed = AOTI.replace("/checkpoints/exported_program.pt2", "/checkpoints/another.pt2")
    for text in (AOTI, renamed):
        found = taken(held(graph("0", text, beside=tmp_path)), place(tmp_path))
        assert found.read == ((tmp_path / "exported_program.pt2").resolve(),)
    assert " ops" not in found.detail


def test_tensors_of_a_gpu_are_said(tmp_path: Path) -> None:
    assert "its tensors are on cuda" in taken(held(graph("0/0", DYNAMO)), place(tmp_path)).notes
    assert not any("its tensors are" in note for note in taken(held(graph("0/0")), place(tmp_path)).notes)


def test_numbers_are_wrong_where_all_were_dumped_for_theirs(tmp_path: Path) -> None:
    wrong = AOT.replace("accuracy=False", "accuracy=True")
    assert taken(held(graph("0/0", wrong), graph("1/0", wrong)), place(tmp_path)).wrong_numbers
    assert not taken(held(graph("0/0", wrong), graph("1/0")), place(tmp_path)).wrong_numbers
