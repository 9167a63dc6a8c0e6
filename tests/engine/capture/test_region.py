"""What a program writes into its capture in the place of a region is none, and no fault of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.engine.capture import region as region_room
from bot.engine.capture.region import read_regions
from bot.engine.capture.starts import starts
from bot.models.failure import Kind, Phase, Signature
from bot.reduce.graph.form import Graph, Input, Meta, Node, Ref, Value
from bot.reduce.graph.printer.script import render
from bot.reduce.graph.size import size_key
from tests.engine.capture.test_left import FORGED
from tests.reduce.graph.json_form import graph_to_json

FAILURES = [Signature(kind=Kind.EXCEPTION, phase=Phase.INDUCTOR_LOWERING), Signature(kind=Kind.ACCURACY, phase=Phase.RUN)]
TENSOR = Meta("tensor", (2, 3), (3, 1), "float32", dynamic=(0,), symbols=("s0", None))
BODY = Graph((Input("b", TENSOR),), (Node("n", "method", "relu", (Ref("b"),), (), TENSOR),), (Ref("n"),))
GRAPH = Graph(
    (Input("x", TENSOR), Input("n", Meta("int", symbols=("s1",)), Value("literal", ("3",)))),
    (
        Node("sin", "function", "torch.ops.aten.sin.default", (Ref("x"),), (), TENSOR),
        Node("both", "function", "torch.ops.higher_order.cond", (True, Ref("f"), Ref("f"), [Ref("sin")]), (("dim", 1),), TENSOR),
    ),
    (Ref("both"), Ref("x")),
    (Input("w", TENSOR, Value("blob", ("w.bin", "float32")), requires_grad=True, parameter=True),),
    (("f", BODY),),
)
DESCRIBED = {"text": None, "name": "Hook", "expressions": ["Hook()"], "wanted": ["Hook"], "definitions": ["class Hook:\n    pass"]}
REGION: dict[str, Any] = {
    "hook": "dynamo",
    "failed": "accuracy",
    "backward": False,
    "recipe": {
        "backend": DESCRIBED,
        "options": {"a": DESCRIBED},
        "custom_backend_passes": {"cpu": DESCRIBED},
        "contexts": ["torch.no_grad()"],
    },
    "graph": graph_to_json(GRAPH),
    "reason": None,
    "rule": {"strict": True, "tolerance": [1e-3, 1e-4]},
    "wrong": [1],
    "launches": ["  File"],
    "blamed": [["sin"]],
}
OTHERS: tuple[Any, ...] = (
    *(None, True, -1, 7, 10**400, 1.5, float("nan"), float("inf"), "", "a\n'b", "\udcff", [], [[]], {}, [None] * 3, [-1], [2**64]),
    *({"$ref": "nowhere"}, {"$ref": 7}, {"$ref": []}, {"$code": None}, {"$tuple": 3}, {"$slice": [1]}, {"$map": [[1]]}),
)


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(one for key, below in inner for one in places(below, (*place, key)))]


def changed(value: Any, place: tuple[Any, ...], other: Any) -> Any:
    if not place:
        return other
    new = dict(value) if isinstance(value, dict) else list(value)
    new[place[0]] = changed(value[place[0]], place[1:], other)
    return new


def without(value: Any, place: tuple[Any, ...]) -> Any:
    if len(place) > 1:
        new = dict(value) if isinstance(value, dict) else list(value)
        new[place[0]] = without(value[place[0]], place[1:])
        return new
    return {key: one for key, one in value.items() if key != place[0]} if isinstance(value, dict) else value[: place[0]]


def used(directory: Path) -> int:
    """How many scripts come of the regions in this directory; each is printed and weighed."""
    count = 0
    for failure in FAILURES:
        for start in starts(read_regions(directory), failure, "class Hook:\n    pass\n", 1, seed=0):
            script = render(start.program)
            size_key(start.program, script)
            assert script.encode()
            count += 1
    return count


def test_a_region_is_used(tmp_path: Path) -> None:
    (tmp_path / "region-001.json").write_text(json.dumps(REGION))
    (region,) = read_regions(tmp_path)
    assert (region.reason, region.blobs, region.wrong) == (None, tmp_path / "region-001", (1,))
    assert used(tmp_path) > 4


@pytest.mark.parametrize("place", places(REGION), ids=lambda place: ".".join(map(str, place)) or "all")
def test_whatever_a_place_of_it_holds(tmp_path: Path, place: tuple[Any, ...]) -> None:
    forged = [*(changed(REGION, place, other) for other in OTHERS), *([without(REGION, place)] if place else [])]
    for facts in forged:
        (tmp_path / "region-001.json").write_text(json.dumps(facts))
        used(tmp_path)


@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: forge.__name__)
def test_what_is_no_plain_file_of_that_form_is_no_region(tmp_path: Path, forge: Any) -> None:
    (tmp_path / "region-002.json").write_text(json.dumps(REGION))
    forge(tmp_path / "region-001.json")
    assert [region.blobs.name for region in read_regions(tmp_path)] == ["region-002"]


def deep(count: int) -> Any:
    found: Any = {"$ref": "x"}
    for _ in range(count):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("place", "other", "why"),
    [
        (("output",), {"$tuple": [{"$ref": "f"}]}, "a value that is not there"),
        (("nodes", 0, "args", 0), {"$ref": "both"}, "a value that is not there"),
        (("nodes", 0, "args", 0), deep(60), "an argument too deep in others"),
        (("nodes", 0, "name"), "x", "no name, or the same twice"),
        (("nodes", 0, "target"), "a b", "an operation that nobody knows"),
        (("nodes", 0, "meta", "stride"), [1], "a tensor of no possible shape"),
        (("inputs", 0, "meta", "shape"), [2**40, 2**40], "a tensor of no possible shape"),
        (("inputs", 0, "meta", "dynamic"), [2], "a dimension that a tensor has not"),
        (("inputs", 0, "meta", "dtype"), "int8'", "a value of no known kind, dtype or device"),
        (("constants", 0, "value", "args"), [], "no known kind of value"),
        (("bodies", 0, 1, "output"), {"$ref": "x"}, "a value that is not there"),
        ((), {}, "not a graph: KeyError: 'inputs'"),
    ],
)
def test_why_a_graph_is_none(tmp_path: Path, place: tuple[Any, ...], other: Any, why: str) -> None:
    (tmp_path / "region-001.json").write_text(json.dumps(changed(REGION, ("graph", *place), other)))
    assert [(region.graph, region.reason) for region in read_regions(tmp_path)] == [(None, why)]


def test_of_very_many_the_last_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_room, "_MOST_REGIONS", 2)
    for number in (1001, 999, 1000):
        (tmp_path / f"region-{number:03}.json").write_text(json.dumps(REGION))
    assert [region.blobs.name for region in read_regions(tmp_path)] == ["region-1000", "region-1001"]


def test_a_link_to_a_directory_holds_no_regions(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "region-001.json").write_text(json.dumps(REGION))
    (tmp_path / "compared").symlink_to(tmp_path / "elsewhere")
    assert len(read_regions(tmp_path / "elsewhere")) == 1
    assert read_regions(tmp_path / "compared") == ()
