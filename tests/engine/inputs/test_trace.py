"""Structured logs. How a record is written: torch 2.13, TorchLogsFormatter.format and trace_structured in torch/_logging/_internal.py;
read beside tlparse's own test inputs (e86baba)."""

from __future__ import annotations

import io
import json
from typing import Any

from bot.engine.inputs import graphs, trace

PREFIX = "V1123 06:18:00.123000 4711 torch/_inductor/compile_fx.py:1316] "


def record(metadata: dict[str, Any], payload: str | None = None) -> str:
    lines = "".join(f"\n\t{line}" for line in payload.split("\n")) if payload is not None else ""
    return PREFIX + json.dumps(metadata) + lines + "\n"


def graph(frame: int, compile_: int = 0, text: str = "import torch\n\nx = 1", **more: Any) -> str:
    artifact = {"artifact": {"name": "fx_graph_runnable", "encoding": "string"}, "has_payload": "md5"}
    return record({**artifact, "frame_id": frame, "frame_compile_id": compile_, "attempt": 0, **more}, text)


def end(frame: int, compile_: int = 0, failed: tuple[str, str] | None = None, **more: Any) -> str:
    metrics = {"fail_type": failed and failed[0], "fail_reason": failed and failed[1]}
    return record({"compilation_metrics": metrics, "frame_id": frame, "frame_compile_id": compile_, **more})


def read(*parts: str) -> trace.Trace:
    return trace.read(io.BytesIO("".join(parts).encode()))


def test_the_graphs_in_order_and_which_compilation_failed():
    found = read(
        graph(0), end(0), graph(1, text="a\n\tb"), end(1, failed=("InductorError", "\nLoweringException: no\nmore")), graph(2), end(2)
    )
    assert [(g.name, g.failed, g.unfinished) for g in found.graphs] == [
        ("0/0", "", False), ("1/0", "InductorError: LoweringException: no", False), ("2/0", "", False),
    ]  # fmt: skip
    assert found.graphs[1].text == "a\n\tb"
    assert [g.name for g in graphs.chosen(found.graphs, None)] == ["1/0"]
    assert [g.name for g in graphs.chosen(found.graphs, "2/0")] == ["2/0"]
    assert graphs.chosen(found.graphs, "7/0") == []


def test_the_last_of_several_graphs_of_one_compilation_is_the_one_that_failed():
    found = read(graph(0, text="forward"), graph(0, text="backward"), end(0, failed=("E", "x")))
    assert [(g.name, bool(g.failed)) for g in found.graphs] == [("0/0.1", False), ("0/0.2", True)]
    assert [g.text for g in graphs.chosen(found.graphs, "0/0")] == ["backward"]


def test_a_log_that_ends_within_a_compilation_points_at_its_graph():
    found = read(graph(0), end(0), graph(1))
    assert [g.name for g in graphs.chosen(found.graphs, None)] == ["1/0"]
    # its forward compiled, its backward did not come back
    found = read(graph(0), end(0), graph(0))
    assert [(g.name, g.unfinished) for g in found.graphs] == [("0/0.1", False), ("0/0.2", True)]


def test_where_nothing_failed_all_graphs_are_run():
    found = read(graph(0), end(0), graph(1), end(1))
    assert [g.name for g in graphs.chosen(found.graphs, None)] == ["0/0", "1/0"]


def test_a_compilation_that_failed_before_it_had_a_graph_is_kept_by_name():
    found = read(graph(0), end(0), end(1, failed=("Unsupported", "call of x")))
    assert found.failures == {"1/0": "Unsupported: call of x"}


def test_rank_and_compiled_autograd_are_part_of_the_name():
    found = read(graph(0, rank=3), graph(1, 2, compiled_autograd_id=4))
    assert [g.name for g in found.graphs] == ["rank3:0/0", "!4/1/2"]


def test_damaged_records_foreign_lines_and_very_long_lines_are_passed_over(monkeypatch):
    monkeypatch.setattr(trace, "_LONGEST_LINE", 1000)
    long = PREFIX + '{"dynamo_guards": "' + "x" * 100_000 + '"}\n'
    found = read("not a record\n", PREFIX + "{broken\n", long, graph(0), "\xff\xfe\n", end(0))
    assert [g.name for g in found.graphs] == ["0/0"]
    assert not found.graphs[0].unfinished


def test_a_large_log_is_read_without_being_held(monkeypatch):
    monkeypatch.setattr(trace, "MOST_OF_ONE", 1000)
    monkeypatch.setattr(trace, "MOST_OF_ALL", 1500)
    found = read(graph(0, text="x\n" * 2000), graph(1, text="y" * 900), graph(2, text="z" * 900))
    assert [g.name for g in found.graphs] == ["1/0"]
    assert found.left_out == 2
