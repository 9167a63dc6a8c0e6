"""Structured logs of torch (TORCH_TRACE), read line by line: the graphs in them, and which compilation failed.

A record is one line, `V1123 06:18:00.000000 4711 torch/...py:22] {JSON}`, and, if the JSON says `has_payload`, the lines after it that
begin with a tab. The payload of the artifact `fx_graph_runnable` is a script that PyTorch dumped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from bot.engine.inputs.bodies import with_bodies
from bot.engine.inputs.printed import as_dump
from bot.engine.inputs.taken import DumpedGraph, json_of

_RECORD = re.compile(rb"[VDIWEC]\d{4} [0-9:.]{8,20} +\d+ [^\]\n]{1,400}:\d+\] \{")
# Graphs as they are printed for people: Dynamo's, and that of an inference after AOTAutograd.
_PRINTED = {"dynamo_output_graph", "aot_inference_graph"}
# The lines of a payload are lines of code; a longer line is not part of a graph.
_LONGEST_LINE = 4 * 2**20
# The most of one graph (bytes), of all that is kept at a time (characters), and the most graphs of one log.
MOST_OF_ONE, MOST_OF_ALL, MOST_GRAPHS = 16 * 2**20, 256 * 2**20, 2000


@dataclass
class Trace:
    """What one log holds: its `graphs` in order, the `failures` of compilations without a graph, and how much was left out."""

    graphs: list[DumpedGraph] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    records: int = 0
    left_out: int = 0


def is_trace(head: bytes) -> bool:
    """Whether a file that begins with `head` is a structured log."""
    return any(_RECORD.match(line) for line in head.splitlines()[:50])


def read(file: BinaryIO) -> Trace:
    """Everything useful in the log `file`, without reading it all at once. Lines that are not records are skipped."""
    found = Trace()
    began: list[tuple[str, str]] = []  # compile id and text of each graph
    printed: dict[str, str] = {}  # the Dynamo graph of each compilation that has no other yet
    ended: dict[str, tuple[str, int]] = {}  # how each compilation ended, and after which of its graphs
    inference = "", ""  # the last inference graph, as torch printed it for people, with its compile id before it
    kept = 0
    for record, payload in _records(file):
        found.records += 1
        name = compile_id(record)
        if _is_readable(record) and began and began[-1][0] == name:
            began[-1] = name, with_bodies(began[-1][1], payload)
        if "dynamo_output_graph" in record and payload and len(printed) < MOST_GRAPHS:
            printed[name] = payload
        if "aot_inference_graph" in record:
            inference = name, payload
        if _is_runnable(record):
            printed.pop(name, None)
            payload = with_bodies(payload, inference[1]) if inference[0] == name else payload
            if payload and len(began) < MOST_GRAPHS and kept + len(payload) <= MOST_OF_ALL:
                began.append((name, payload))
                kept += len(payload)
            else:
                found.left_out += 1
        for key in ("compilation_metrics", "bwd_compilation_metrics", "aot_autograd_backward_compilation_metrics"):
            if isinstance(metrics := record.get(key), dict):
                said = ended.get(name, ("", 0))[0] or _failure(metrics)
                ended[name] = said, sum(name == other for other, _ in began)
    found.graphs = list(_graphs(began, ended))
    found.graphs += _of_dynamo(printed, ended)
    with_graph = {graph.of for graph in found.graphs}
    found.failures = {name: said for name, (said, _) in ended.items() if said and name not in with_graph}
    return found


def compile_id(record: dict[str, Any]) -> str:
    """The compile id of a `record` as torch writes it, after its rank: `rank1:0/0`, `0/0`, `!0/0/0` under compiled autograd."""
    numbers = [record.get(key) for key in ("frame_id", "frame_compile_id")]
    of_frame = "/".join("-" if n is None else str(n) for n in numbers)
    autograd = record.get("compiled_autograd_id")
    rank = record.get("rank")
    return (f"rank{rank}:" if isinstance(rank, int) else "") + (f"!{autograd}/" if autograd is not None else "") + of_frame


def _graphs(began: list[tuple[str, str]], ended: dict[str, tuple[str, int]]) -> Iterator[DumpedGraph]:
    counts: dict[str, int] = {}
    for name, _ in began:
        counts[name] = counts.get(name, 0) + 1
    seen: dict[str, int] = {}
    for name, text in began:
        seen[name] = seen.get(name, 0) + 1
        # the compilation went on after each of its graphs but the last
        last = seen[name] == counts[name]
        numbered = name if counts[name] == 1 else f"{name}.{seen[name]}"
        said, behind = ended.get(name, ("", 0))
        yield DumpedGraph(numbered, text, said if last else "", unfinished=last and behind < counts[name])


def _of_dynamo(printed: dict[str, str], ended: dict[str, tuple[str, int]]) -> Iterator[DumpedGraph]:
    """The graphs of compilations that failed before a graph was dumped."""
    for name, text in printed.items():
        said, _ = ended.get(name, ("", 0))
        dumped = as_dump(text, said) if said else None
        if dumped is not None:
            yield DumpedGraph(name, dumped, said)


def _is_runnable(record: dict[str, Any]) -> bool:
    artifact = record.get("artifact")
    return isinstance(artifact, dict) and artifact.get("name") == "fx_graph_runnable"


def _is_readable(record: dict[str, Any]) -> bool:
    """Whether it is the print of the graph that was dumped just before."""
    artifact = record.get("artifact")
    return isinstance(artifact, dict) and artifact.get("name") == "before_post_grad_graph"


def _failure(metrics: dict[str, Any]) -> str:
    sort, reason = metrics.get("fail_type"), metrics.get("fail_reason")
    if not sort:
        return ""
    first = next((line.strip() for line in str(reason or "").splitlines() if line.strip()), "")
    return f"{str(sort)[:100]}: {first[:200]}" if first else str(sort)[:100]


def _records(file: BinaryIO) -> Iterator[tuple[dict[str, Any], str]]:
    """Each record with its payload, which is kept only for graphs."""
    record: dict[str, Any] | None = None
    payload: list[str] = []
    size, keeps = 0, False
    for line in _lines(file):
        if line.startswith(b"\t"):
            if keeps:
                size += len(line)
                keeps = size <= MOST_OF_ONE
                payload.append(line[1:].decode("utf-8", "replace"))
            continue
        if record is not None:
            yield record, "\n".join(payload) if keeps else ""
        record, payload, size = _parsed(line), [], 0
        keeps = record is not None and (_is_runnable(record) or _is_readable(record) or not _PRINTED.isdisjoint(record))
    if record is not None:
        yield record, "\n".join(payload) if keeps else ""


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines without their ends; only the beginning of a line that is too long."""
    while line := file.readline(_LONGEST_LINE):
        whole = line.endswith(b"\n")
        yield line.rstrip(b"\r\n")
        while not whole and (rest := file.readline(_LONGEST_LINE)):
            whole = rest.endswith(b"\n")


def _parsed(line: bytes) -> dict[str, Any] | None:
    match = _RECORD.match(line)
    if match is None:
        return None
    try:
        found = json_of(line[match.end() - 1 :].decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
