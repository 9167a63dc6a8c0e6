from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.graph.codec import graph_from_json, meta_from_json
from bot.reduce.graph.form import Code, Graph, Input, Mapping, Meta, Node, Ref, Slice, Value
from tests.reduce.graph.json_form import graph_to_json, meta_to_json

names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
sizes = st.lists(st.integers(0, 9), max_size=4).map(tuple)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    names.map(Ref),
    st.sampled_from(["torch.float32", "...", 'torch.device("cpu")']).map(Code),
)


def compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Slice, inner, inner, inner),
        st.lists(st.tuples(st.text(max_size=4), inner), max_size=3).map(lambda items: Mapping(tuple(items))),
    )


args = st.recursive(leaves, compound, max_leaves=6)
metas = st.recursive(
    st.builds(
        Meta,
        kind=st.sampled_from(["tensor", "int", "float", "bool", "other"]),
        shape=sizes,
        stride=sizes,
        dtype=st.sampled_from(["", "float32", "int64"]),
        device=st.sampled_from(["cpu", "cuda", "cuda:1"]),
        dynamic=sizes,
        symbols=st.lists(st.one_of(st.none(), st.just("s77")), max_size=3).map(tuple),
    ),
    lambda inner: st.builds(Meta, items=st.lists(inner, max_size=2).map(tuple)),
    max_leaves=3,
)
inputs = st.builds(
    Input,
    name=names,
    meta=metas,
    value=st.builds(
        Value, st.sampled_from(["randn", "literal", "blob"]), st.lists(st.one_of(st.integers(), st.text(max_size=4)), max_size=2).map(tuple)
    ),
    requires_grad=st.booleans(),
    leaf=st.booleans(),
    parameter=st.booleans(),
    keyword=st.one_of(st.none(), names),
)
nodes = st.builds(
    Node,
    name=names,
    op=st.sampled_from(["function", "method"]),
    target=names,
    args=st.lists(args, max_size=3).map(tuple),
    kwargs=st.lists(st.tuples(names, args), max_size=2).map(tuple),
    meta=metas,
    writes=st.lists(st.integers(0, 3) | names, max_size=2).map(tuple),
)


def several(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=3).map(tuple)


plain = st.builds(Graph, inputs=several(inputs), nodes=several(nodes), output=args, constants=several(inputs))
graphs = st.builds(
    Graph, inputs=several(inputs), nodes=several(nodes), output=args, constants=several(inputs), bodies=several(st.tuples(names, plain))
)


@given(graphs)
def test_a_graph_survives_json(graph: Graph) -> None:
    assert graph_from_json(json.loads(json.dumps(graph_to_json(graph), allow_nan=False))) == graph


@given(metas)
def test_a_meta_survives_json(meta: Meta) -> None:
    assert meta_from_json(json.loads(json.dumps(meta_to_json(meta)))) == meta


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (math.inf, "torch.inf"),
        (-math.inf, "-torch.inf"),
        (math.nan, "torch.nan"),
        (1 + 2j, "(1+2j)"),
        (complex(1, -0.0), "complex(1.0, -0.0)"),
    ],
)
def test_what_json_has_no_number_for_becomes_code(value: complex, code: str) -> None:
    graph = Graph((), (), value)
    assert graph_from_json(graph_to_json(graph)).output == Code(code)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"inputs": [], "nodes": [{}], "output": None},
        {"inputs": [], "nodes": [], "output": {"$what": 1}},
        {"inputs": [], "nodes": [], "output": {"$slice": [1]}},
        {"inputs": [{"name": "x"}], "nodes": [], "output": None},
        {"inputs": 3, "nodes": [], "output": None},
    ],
)
def test_other_json_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"not a|unpack|expected"):
        graph_from_json(data)
