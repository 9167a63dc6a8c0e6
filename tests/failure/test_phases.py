"""Each landmark on its example: it matches, and no row above it does."""

from __future__ import annotations

import pytest

from bot.failure.phases import BACKWARD, HINTS, LANDMARKS, TRITON_KERNEL, Landmark, innermost, is_backward, phase_of
from bot.failure.traceback import Frame
from bot.models.failure import Phase

TABLES = {"landmark": LANDMARKS, "hint": HINTS, "backward": BACKWARD, "kernel": TRITON_KERNEL}
ROWS = [pytest.param(table, row, id=f"{name} {row.example}") for name, table in TABLES.items() for row in table]


def frame(place: str) -> Frame:
    path, _, function = place.rpartition(":")
    return Frame(path, function)


@pytest.mark.parametrize(("table", "row"), ROWS)
def test_each_row_is_the_first_that_matches_its_example(table: tuple[Landmark, ...], row: Landmark) -> None:
    assert next(other for other in table if other.matches(frame(row.example))) is row


def test_the_innermost_landmark_decides_and_hints_only_where_there_is_none() -> None:
    outer, inner = frame("torch/__init__.py:compile"), frame("torch/_inductor/scheduler.py:codegen")
    hint = frame("torch/_inductor/pattern_matcher.py:apply")
    assert phase_of([outer, inner, hint]) is Phase.INDUCTOR_CODEGEN
    assert phase_of([inner, outer]) is Phase.DYNAMO
    assert phase_of([hint]) is Phase.POST_GRAD
    assert phase_of([Frame("repro.py", "main")]) is Phase.RUN


def test_a_class_that_one_phase_raises_decides_before_the_frames() -> None:
    assert phase_of([frame("torch/__init__.py:compile")], ["InductorError", "CppCompileError"]) is Phase.CPP_COMPILE


def test_a_tracer_below_the_exporter_is_export() -> None:
    tracer = frame("torch/_dynamo/symbolic_convert.py:step")
    assert phase_of([tracer]) is Phase.DYNAMO
    assert phase_of([frame("torch/export/_trace.py:_export"), tracer]) is Phase.EXPORT


def test_how_composite_operations_are_taken_apart_is_no_export() -> None:
    """Inductor's decompositions lead through a helper of the exporter's, whoever traces."""
    helper = frame("torch/_export/utils.py:_special_op_to_decompose_cia")
    passes, dynamo = frame("torch/_inductor/fx_passes/post_grad.py:post_grad_passes"), frame("torch/_dynamo/convert_frame.py:compile_inner")
    trace = frame("torch/_functorch/_aot_autograd/graph_capture.py:aot_dispatch_base_graph")
    assert phase_of([dynamo, passes, helper]) is Phase.POST_GRAD
    assert phase_of([dynamo, trace, helper]) is Phase.AOT_AUTOGRAD
    assert phase_of([frame("torch/export/exported_program.py:run_decompositions"), trace, helper]) is Phase.EXPORT
    assert phase_of([frame("torch/_export/utils.py:_collect_and_set_constant_attrs")]) is Phase.EXPORT


def test_backward_and_the_innermost_frame_in_torch() -> None:
    stack = [frame("torch/autograd/__init__.py:backward"), frame("torch/_dynamo/exc.py:unimplemented"), frame("repro.py:hook")]
    assert is_backward(stack)
    assert not is_backward(stack[1:])
    assert innermost(stack) == "torch/autograd/__init__.py:backward"
    assert innermost(stack[2:]) is None


# The frames of torch 2.13 in which the source of a generated kernel is imported: in this process, and in a compile worker.
IMPORTED = ("torch/_inductor/codecache.py:_load_triton_kernel_from_source", "torch/_inductor/codecache.py:load_by_key_path")
LAST = "torch/_inductor/runtime/compile_tasks.py:_reload_python_module"
GENERATED_MODULE = "/tmp/torchinductor_me/ab/cabcabcabcabcabcabcabcabc.py:<module>"
HERE = ("torch/_inductor/graph.py:compile_to_module", GENERATED_MODULE, "torch/_inductor/async_compile.py:triton")
IN_WORKER = ("torch/_inductor/compile_worker/subproc_pool.py:do_job", "torch/_inductor/runtime/compile_tasks.py:_worker_compile_triton")


@pytest.mark.parametrize("outside", [HERE, IN_WORKER])
def test_source_that_triton_cannot_even_read_is_not_compiled(outside: tuple[str, ...]) -> None:
    """A lowering that writes `compile error` into a kernel: a SyntaxError where the kernel's module is imported."""
    frames = [Frame(*name.rsplit(":", 1)) for name in (*outside, *IMPORTED, LAST)]
    assert phase_of(frames) is Phase.TRITON_COMPILE
    wrapper = [Frame(*name.rsplit(":", 1)) for name in (HERE[0], IMPORTED[1], LAST, GENERATED_MODULE)]
    assert phase_of(wrapper) is Phase.LOAD, "the code around the kernels is no kernel"


@pytest.mark.parametrize(
    ("function", "phase"),
    [
        ("load", Phase.LOAD),
        ("_load_main", Phase.LOAD),
        ("get_result", Phase.LOAD),
        ("result", Phase.LOAD),
        ("open", Phase.LOAD),
        ("close", Phase.LOAD),
        ("__init__", Phase.LOAD),
        ("future", Phase.LOAD),
        ("task", Phase.LOAD),
        ("compile_file", Phase.CPP_COMPILE),
        ("_compile_file", Phase.CPP_COMPILE),
        ("_worker_compile_cpp", Phase.CPP_COMPILE),
    ],
)
def test_what_the_cache_of_code_does(function: str, phase: Phase) -> None:
    assert phase_of([frame(f"torch/_inductor/codecache.py:{function}")]) is phase
