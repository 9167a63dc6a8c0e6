"""What must be true of the result for each case: the rows that the tests are made of."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

CPP = "CppCompileError"
CLOSE = r"AssertionError"


INSTALLED = next((found.version for found in importlib.metadata.distributions(name="torch")), "")
TORCH = tuple(int(part) for part in re.findall(r"\d+", INSTALLED)[:2])


@dataclass(frozen=True)
class Mended:
    """A defect that torch has no more from a version on: the case must end in "not reproduced" there, for this reason (a regex).
    `instead` is the case that stands for its cell of the support table there, where it did so before."""

    version: tuple[int, int]
    reason: str
    instead: str = ""


@dataclass(frozen=True)
class Row:
    """One program under `cases/` and its result.

    `original` is how the program fails without us (a regex on its output; None: it ends well, and only a comparison shows
    the failure). `repro` is how the repro fails. `stage` may name alternatives with `|`. `ops` is the most that may be left, `queries` the most that may
    be asked once the search has its start.
    """

    case: str
    stage: str
    kind: str
    phase: str | None
    root: str | None = None
    message: str = ""
    backward: bool | None = None
    ops: int | None = None
    queries: int | None = None
    lines: int = 0  # 0: about 20, and 30 where the source of a pass belongs to it
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    original: str | None = None
    repro: str = ""
    culprit: str | None = None
    dumped: str = ""  # PyTorch's pipeline whose dump is kept beside the original, by its module in torch._dynamo.repro
    exported: bool | None = None  # with True the exported program must show the same signature; with False it need only open
    kernel: bool = False  # the kernel alone has to fail like the repro
    options: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()  # of whoever calls torch-minify; the repro is run without
    mended: Mended | None = None
    only_all: bool = True
    name: str = ""

    @property
    def most_lines(self) -> int:
        return self.lines or (20 if self.culprit is None else 30)

    @property
    def mended_here(self) -> Mended | None:
        """What is mended, in the torch that runs the tests."""
        return self.mended if self.mended is not None and self.mended.version <= TORCH else None

    @property
    def id(self) -> str:
        return self.name or self.case


_LONG = {"hang": [pytest.mark.long], "crash": [pytest.mark.long]}


def params(rows: Iterable[Row]) -> list[object]:
    """For `pytest.mark.parametrize`."""
    instead = {row.mended_here.instead for row in ROWS if row.mended_here and not row.only_all}

    def marks(row: Row) -> list[pytest.MarkDecorator]:
        return [*([pytest.mark.all] if row.only_all and row.id not in instead else []), *_LONG.get(row.kind, [])]

    return [pytest.param(row, id=row.id, marks=marks(row)) for row in rows]


# From 2.15 on eager has the kernel's size checked, as the compiler always had.
_POOL_REFUSED = "the program fails in eager as well: RuntimeError: fractional_max_pool2d.*kernel size should be greater than zero"
POOL = Mended((2, 15), _POOL_REFUSED)


AOT = (
    Row("aot_compile_error", "aot", "exception", "cpp_compile", CPP, ops=1, has=("relu",), lacks=("Linear", "softmax"), original=CPP,
        repro=CPP, exported=True, kernel=True, dumped="after_aot"),
    Row("hang_lowering", "aot", "hang", "inductor_lowering", ops=1, has=("asinh", "Event().wait()"), lacks=("softmax", "cos"),
        options=("--hang-after", "5s", "--budget", "8m"), only_all=False),
    Row("aot_run_time_error", "aot", "exception", "run", "RuntimeError", "unhandled error", ops=1, has=("relu",), lacks=("cos", "sum"),
        original="RuntimeError: unhandled error", repro="unhandled error", exported=True),
    Row("aot_accuracy", "aot", "accuracy", "run", ops=1, has=("relu", "assert_close"), lacks=("tanh", "exp"), repro=CLOSE, exported=True,
        only_all=False),
    Row("aot_constant", "aot", "exception", "cpp_compile", CPP, ops=1, has=("relu",), lacks=("4.5", "cumsum"), original=CPP, repro=CPP),
    Row("aot_constant_accuracy", "aot", "accuracy", "run", ops=1, has=("relu",), original=CLOSE, repro=CLOSE),
    Row("aot_strict", "aot", "accuracy", "run", ops=1, has=("relu",), lacks=("torch.log1p", "aten.log1p", ".log1p("), repro=CLOSE),
    Row("aot_strict", "aot", "accuracy", "run", has=("log1p(",), lacks=("relu(",), repro=CLOSE, options=("--accuracy", "strict"),
        name="aot_strict-strict"),
    Row("aot_offload", "aot", "accuracy", "run", ops=1, has=("relu",), lacks=("sin", "4096"), repro=CLOSE),
    Row("lowering_override", "aot", "exception", "inductor_lowering", "NotImplementedError", "no lowering for erf here", ops=1,
        has=("erf", "no lowering for erf"), original="no lowering for erf", repro="no lowering for erf"),
)  # fmt: skip

AOT_INDUCTOR = (
    Row("aoti_compile_error", "aot_inductor", "exception", "cpp_compile", CPP, ops=1, has=("relu", "aoti_compile_and_package"),
        lacks=("sigmoid", "Sigmoid", "Linear"), original=CPP, repro=CPP, exported=True, dumped="aoti"),
    Row("aoti_accuracy", "aot_inductor", "accuracy", "run", ops=1, has=("relu", "aoti_compile_and_package"),
        lacks=("sigmoid", "Linear"), original=CLOSE, repro=CLOSE, exported=True, only_all=False),
    Row("aoti_dict_inputs", "aot_inductor", "exception", "cpp_compile", CPP, ops=1, has=("relu",), lacks=("sigmoid", "right", "Linear"),
        original=CPP, repro=CPP, exported=True),
    Row("aoti_dict_inputs_accuracy", "aot_inductor", "accuracy", "run", ops=1, has=("relu",), lacks=("sigmoid", "right", "Linear"),
        repro=CLOSE, exported=True),
)  # fmt: skip

DYNAMO = (
    Row("dynamo_compile_error", "dynamo", "exception", "dynamo|pre_grad|aot_autograd|run", "ReluCompileError", ops=1, has=("relu(",),
        lacks=("torch.sin", "torch.cos"), original="ReluCompileError", repro="ReluCompileError", exported=False, dumped="after_dynamo", only_all=False),
    Row("dynamo_compile_error_long", "dynamo", "exception", None, "ReluCompileError", ops=1, has=("relu(",), lacks=("torch.sin", "torch.cos"),
        original="ReluCompileError", repro="ReluCompileError"),
    Row("dynamo_run_time_error", "dynamo", "exception", "run", "AssertionError", "ReluRuntimeError", ops=1, has=("relu(",),
        lacks=("torch.sin", "torch.cos"), original="ReluRuntimeError", repro="ReluRuntimeError"),
    Row("dynamo_accuracy_error", "dynamo", "accuracy", "run", ops=1, has=("relu(",), lacks=("torch.sin", "torch.cos"), repro=CLOSE,
        only_all=False),
    Row("dynamo_non_leaf", "dynamo", "exception", None, "TestingOnlyCompileError", ops=1, original="TestingOnlyCompileError",
        repro="TestingOnlyCompileError", exported=False),
    Row("dynamo_own_backend", "dynamo|source", "exception", None, "NotImplementedError", "picky cannot multiply matrices", ops=1,
        has=("picky",), lacks=("torch.tanh(x)",), lines=25, original="picky cannot multiply", repro="picky cannot multiply matrices"),
    Row("dynamo_own_backend_accuracy", "dynamo|source", "accuracy", "run", has=("rounding", "sigmoid"), lacks=("cumsum",), lines=25,
        original=CLOSE, repro=CLOSE),
)  # fmt: skip

OTHERS = (
    Row("backward_compile_error", "aot|dynamo|source", "exception", "cpp_compile", CPP, backward=True, has=("relu",),
        original=CPP, repro=CPP),
    Row("backward_accuracy", "aot|dynamo|source", "accuracy", "run", has=("relu",), original=CLOSE, repro=CLOSE),
    Row("dynamic_shapes", "dynamo|source", "exception", None, "TypeError", "whose size is not known", has=("mark_dynamic(", "cat"),
        lacks=("torch.sin",), original="whose size is not known", repro="whose size is not known"),
    Row("two_bugs", "aot", "exception", "inductor_lowering", "AssertionError", "max not supported for zero-dimension tensors!", ops=1,
        has=("fractional_max_pool2d",), lacks=("relu",), original="max not supported", repro="max not supported for zero-dimension",
        mended=POOL),
    Row("crash_tracing", "source", "crash", "dynamo", lines=14, has=("shop::priced", "register_fake", "string_at"),
        lacks=("Linear", "relu", "sum"), only_all=False),
    Row("hang_tracing", "source", "hang", "dynamo", lines=15, has=("shop::halved", "register_fake", "while"), lacks=("Linear", "relu", "sum"),
        options=("--hang-after", "10s", "--budget", "8m")),
    Row("custom_operator", "aot", "exception", "run", "AssertionError", "expected size", ops=1,
        has=("shop::turned", "register_fake", "empty_like"), lacks=("unused", "softmax", "cumsum"), original="expected size",
        repro="expected size"),
    Row("dropout_accuracy", "aot|dynamo|source", "accuracy", "run", ops=1, has=("relu",), lacks=("tanh", "Linear"), repro=CLOSE),
    Row("eager_alone", "aot", "accuracy", "run", ops=2, has=("same_two_models_use_fp64 = False",), lacks=("sigmoid",), repro=CLOSE),
    Row("eight_bits_accuracy", "aot", "accuracy", "run", ops=1, has=("relu",), lacks=("_scaled_mm", "float8"), repro=CLOSE),
)  # fmt: skip

# What is wrong inside the body of a higher-order operation, or behind a tensor subclass, is wrong without it.
HIGHER_ORDER = tuple(
    Row(case, "aot|dynamo", "exception", "cpp_compile", CPP, ops=1, lines=7, has=("torch.relu",), lacks=("fullgraph", *lacks),
        original=CPP, repro=CPP, exported=True)
    for case, lacks in (("nested_region", ("nested_compile_region",)), ("tensor_subclass", ("TwoTensor",)), ("scan_body", ("scan",)))
)  # fmt: skip

# A setting by which a healthy program fails, given by an environment variable. The repro is run without that.
_FX_WRAPPER, _FX_WRAPPER_SAYS = "TORCHINDUCTOR_FX_WRAPPER", "FX conversion only supports Triton kernels"
ENVIRONMENT = (
    Row("environment_script", "aot", "exception", None, "NotImplementedError", "Unsupported type for kernel", ops=1,
        has=("fx_wrapper",), lacks=("softmax", "cumsum"), original=_FX_WRAPPER_SAYS, repro=_FX_WRAPPER_SAYS),
    Row("environment_caller", "aot", "exception", None, "NotImplementedError", "Unsupported type for kernel", ops=1,
        has=("fx_wrapper",), lacks=("softmax", "cumsum"), env=((_FX_WRAPPER, "1"),), original=_FX_WRAPPER_SAYS,
        repro=_FX_WRAPPER_SAYS),
    Row("environment_caller", "source", "exception", None, "NotImplementedError", "Unsupported type for kernel",
        lines=7, has=(_FX_WRAPPER,), lacks=("tanh", "cumsum"), env=((_FX_WRAPPER, "1"),), original=_FX_WRAPPER_SAYS,
        repro=_FX_WRAPPER_SAYS, options=("--stage", "source"),
        name="environment_caller-as-source"),
)  # fmt: skip

# One defect at least for each stage and kind that is no testing hook: torch 2.13 has them all, and later ones have those not mended.
DEFECTS = (
    Row("real_aot_lowering", "aot", "exception", "inductor_lowering", "AssertionError", "max not supported for zero-dimension tensors!",
        ops=1, has=("fractional_max_pool2d",), lacks=("gelu", "softmax", "Conv2d"), original="max not supported",
        repro="max not supported for zero-dimension", exported=True, dumped="after_aot",
        mended=Mended((2, 15), _POOL_REFUSED, instead="aot_compile_error"), only_all=False),
    Row("real_aot_cpp", "aot", "exception", "cpp_compile", CPP, ops=2, has=("minimum", "uint8"), original=CPP, repro=CPP, exported=True),
    Row("real_aot_accuracy", "aot", "accuracy", "run", ops=4, has=("abs", "uint8"), lacks=("softmax", "cumsum"), original=CLOSE, repro=CLOSE),
    Row("real_no_raise", "source", "no_raise", None, has=("binary_cross_entropy",), original="AssertionError",
        only_all=False),
    Row("real_aot_autograd_while", "dynamo|source", "exception", "aot_autograd|dynamo", "RuntimeError", "might be aliasing the input or the output",
        has=("while_loop", "scatter"), lacks=("torch.sin",), original="might be aliasing", repro="might be aliasing"),
    Row("real_aot_autograd_pool", "dynamo|source", "exception", "aot_autograd|joint", "RuntimeError", "adaptive_max_pool2d_backward", lacks=("gelu",),
        original="adaptive_max_pool2d_backward", repro="adaptive_max_pool2d_backward"),
    Row("real_aot_gradient", "source", "accuracy", "run", has=("autocast", "aot_eager"), original=CLOSE, repro=CLOSE,
        only_all=False),
    Row("real_aoti_lowering", "aot_inductor", "exception", "inductor_lowering", "AssertionError",
        "max not supported for zero-dimension tensors!", ops=1, has=("fractional_max_pool2d",), lacks=("sigmoid", "Conv2d"),
        original="max not supported", repro="max not supported for zero-dimension", exported=True, dumped="aoti",
        mended=Mended((2, 15), _POOL_REFUSED, instead="aoti_compile_error"), only_all=False),
    Row("real_aoti_cpp", "aot_inductor", "exception", "cpp_compile", CPP, ops=2, has=("minimum",), original=CPP, repro=CPP),
    Row("real_aoti_accuracy", "aot_inductor", "accuracy", "run", ops=4, has=("abs", "uint8"), lacks=("cos(", "sin("), repro=CLOSE),
    Row("real_dynamo_class", "source", "exception", "dynamo", "Unsupported", has=("class ", "fullgraph=True"), lacks=("torch.cos",),
        original="Unsupported", repro="Unsupported", only_all=False),
    Row("training_front_end", "source", "exception", "dynamo", "Unsupported", "Data-dependent branching", lines=10, queries=100, has=("fullgraph=True",),
        lacks=("Trainer", "Attention", "Config"), original="Data-dependent branching", repro="Data-dependent branching"),
    Row("real_dynamo_branch", "source", "exception", "dynamo", "UserError", "Could not guard on data-dependent expression",
        has=("nonzero",), lacks=("sigmoid",), original="data-dependent", repro="Could not guard on data-dependent expression"),
    Row("real_export_branch", "source", "exception", "export", "GuardOnDataDependentSymNode", "Could not guard on data-dependent expression",
        has=("export",), lacks=("Linear",), original="data-dependent", repro="Could not guard on data-dependent expression"),
    Row("real_export_size", "source", "exception", "export", "UserError", "specialized it to be a constant", lines=20, has=(" + ",),
        lacks=("reshape", "view"), original="Constraints violated", repro="Constraints violated"),
    Row("real_map", "aot", "exception", "post_grad|inductor_lowering", "DataDependentOutputException", lines=12, has=("torch._higher_order_ops.map(",),
        lacks=("gelu", "Linear", " @ ", "mm("), original="DataDependentOutputException", repro="DataDependentOutputException"),
    Row("real_double_backward", "source", "exception", "run", "RuntimeError", "does not currently support double backward", backward=True,
        lines=10, has=("create_graph=True",), lacks=("Sequential", "norm"), original="double backward", repro="double backward"),
    Row("real_crash", "source", "crash", None, original="", repro=""),
    Row("real_hang", "dynamo", "hang", None, has=("diff",), options=("--hang-after", "10s", "--budget", "8m")),
    Row("real_aot_lowering", "dynamo", "exception", "inductor_lowering", "AssertionError", "max not supported for zero-dimension tensors!",
        ops=1, lacks=("gelu", "softmax"), repro="max not supported for zero-dimension", options=("--stage", "dynamo"),
        mended=POOL, name="real_aot_lowering-as-dynamo"),
    Row("real_aot_lowering", "source", "exception", "inductor_lowering", "AssertionError", "max not supported for zero-dimension tensors!",
        lacks=("gelu", "softmax"), repro="max not supported for zero-dimension", options=("--stage", "source"),
        mended=POOL, name="real_aot_lowering-as-source"),
    Row("real_large", "aot", "exception", "inductor_lowering", "AssertionError", "max not supported for zero-dimension tensors!", ops=1,
        has=("fractional_max_pool2d",), lacks=("silu", "softmax"), original="max not supported", repro="max not supported for zero-dimension",
        mended=POOL),
)  # fmt: skip

# The six hooks, each with a pass that raises and one that changes the numbers, in all the forms that a pass can have.
PASSES = (
    Row("pass_pre_grad_raises", "dynamo|source", "exception", "pre_grad", "ValueError", "a cosine is left in the graph", ops=1,
        has=("no_cosine",), culprit="pre_grad_custom_pass", original="a cosine is left", repro="a cosine is left in the graph", only_all=False),
    Row("pass_pre_grad_numbers", "dynamo|source", "accuracy", "run", ops=1, has=("CHEAPER", "cheaper"), lacks=("tanh",),
        culprit="pre_grad_custom_pass", original=CLOSE, repro=CLOSE),
    Row("pass_joint_pre_raises", "aot|dynamo|source", "exception", "joint", "AssertionError", "is forbidden", ops=1,
        has=("is forbidden",), culprit="joint_custom_pre_pass", original="is forbidden", repro="is forbidden"),
    Row("pass_joint_pre_numbers", "aot|dynamo|source", "accuracy", "run", ops=1, has=("class Swap",), lacks=("sigmoid",),
        culprit="joint_custom_pre_pass", repro=CLOSE),
    Row("pass_joint_post_raises", "aot|dynamo|source", "exception", "joint", "IndexError", "cannot lay out a concatenation", ops=1,
        has=("class Shapes", "cat"), lacks=("softmax",), culprit="joint_custom_post_pass", original="cannot lay out", repro="cannot lay out a"),
    Row("pass_joint_post_numbers", "aot|dynamo|source", "accuracy", "run", has=("cos_to_sin",), lacks=("tanh",),
        culprit="joint_custom_post_pass", original=CLOSE, repro=CLOSE),
    Row("pass_post_pre_raises", "aot|dynamo|source", "exception", "inductor_lowering|post_grad", "NotImplementedError", "cos of a product", ops=2,
        has=("register_lowering_pattern", "cos_of_product"), lacks=("tanh",), culprit="post_grad_custom_pre_pass",
        original="cos of a product", repro="cos of a product"),
    Row("pass_post_pre_numbers", "aot|dynamo|source", "accuracy", "run", ops=1, has=("class Patterns", "register_graph_pattern"),
        culprit="post_grad_custom_pre_pass", original=CLOSE, repro=CLOSE),
    Row("pass_post_post_raises", "aot|dynamo|source", "exception", "post_grad", "OverflowError", "at most", has=("at_most", "cos"),
        culprit="post_grad_custom_post_pass", original="at most 1", repro="at most 1"),
    Row("pass_post_post_numbers", "aot|dynamo|source", "accuracy", "run", ops=1, has=("torch.ops.aten.sin",), culprit="post_grad_custom_post_pass",
        repro=CLOSE),
    Row("pass_backend_raises", "aot|dynamo|source", "exception", "post_grad", "RuntimeError", "this backend cannot scan", ops=1,
        has=("class NoScan", "register_backend_for_device", "cumsum"), lacks=("tanh",), culprit="NoScan", original="cannot scan",
        repro="this backend cannot scan"),
    # the graph's script holds the chain as it was registered; of the user's own script the one pass of it that matters is left, as a function
    Row("pass_backend_numbers", "aot", "accuracy", "run", ops=1, has=("class Swap", "def uuid", "register_backend_for_device"),
        lacks=("relu", "Chain", "Tidy"), lines=21, culprit="backend pass of cpu: Swap", original=CLOSE, repro=CLOSE),
    Row("pass_freezing", "aot|dynamo|source", "exception", "post_grad", "LookupError", "a frozen weight: constant",
        has=("transpose_free", "freezing"), culprit="post_grad_custom_post_pass", original="a frozen weight", repro="a frozen weight: constant"),
    Row("pass_freezing_numbers", "aot|dynamo|source", "accuracy", "run", has=("cos_to_sin",), culprit="post_grad_custom_pre_pass",
        original=CLOSE, repro=CLOSE),
    Row("pass_backend_freezing", "aot|dynamo|source", "exception", "post_grad", "RuntimeError", "this backend has no tanh",
        has=("class NoMean", "register_backend_for_device"), culprit="NoMean", original="has no tanh", repro="this backend has no tanh"),
)  # fmt: skip

# Programs that do not say plainly how they fail.
HIDDEN = (
    Row("worker_process", "aot|dynamo|source", "exception", "post_grad", "LookupError", "erf is not in the table", ops=1, has=("erf", "class Checks"),
        lacks=("DataLoader", "tanh"), culprit="post_grad_custom_post_pass", original="erf is not in the table", repro="erf is not in the table"),
    Row("swallowed_exit", "source", "exception", "dynamo", "Unsupported", "marked as skipped", lines=7, has=("sys._getframe", "fullgraph=True"),
        lacks=("open(", "sys.exit"), original="Unsupported", repro="Unsupported"),
    Row("own_error_seeded", "source", "exception", "run", "RuntimeError", "NaN in the compiled output", lines=20, has=("manual_seed", "drop_clamp"),
        lacks=("tanh",), culprit="post_grad_custom_pre_pass", original="NaN in the compiled", repro="NaN in the compiled",
        options=("--stage", "source"), name="own_error_seeded_source"),
    Row("own_error_seeded", "aot", "accuracy", "run", "RuntimeError", ops=1, queries=20, has=("drop_clamp", "clamp_min"), lacks=("tanh",), lines=30,
        culprit="post_grad_custom_pre_pass", original="NaN in the compiled", repro=CLOSE),
    Row("own_exit", "aot", "accuracy", "run", "SystemExit", ops=1, queries=10, has=("relu(",), lacks=("Linear", "sys"), original="FAILED", repro=CLOSE,
        only_all=False),
    Row("own_exit", "source", "exception", "run", "SystemExit", lines=12, has=("> 1e-3",), lacks=("Linear", "LayerNorm"), original="FAILED",
        options=("--stage", "source"), name="own_exit_source"),
    Row("own_asserts", "aot", "exception", "inductor_lowering", "NotImplementedError", "no erf of half numbers here", ops=1,
        has=("erf(", "float16"), lacks=("softmax", "cos("), original="not compiled", repro="no erf of half"),
    Row("handled_exit", "aot", "accuracy", "run", "SystemExit", ops=1, queries=10, has=("relu(",), lacks=("Linear", "item"), original="right: False",
        repro=CLOSE),
    Row("own_count", "source", "exception", "run", "RuntimeError", "graphs where one was to be", lines=16, has=("frame_count > 1", "graph_break"),
        lacks=("tanh", "sum"), original="graphs where one", repro="2 graphs where one"),
    Row("real_dynamo_side_effect", "source", "accuracy", "run", lines=20, has=("append",), lacks=("relu",), original="a record is missing",
        repro="AssertionError"),
    Row("taken_by_name", "source", "exception", "inductor_lowering", "TypeError", "knows no such type", lines=14, has=("_prims_common",),
        original="knows no such type", repro="knows no such type", options=("--budget", "5m")),
    Row("aoti_not_loaded", "aot_inductor", "accuracy", "run", ops=1, has=("relu", "aoti_compile_and_package"), lacks=("sigmoid", "Linear"),
        repro=CLOSE),
)  # fmt: skip

HEALTHY = (
    ("healthy_plain", (), False),
    ("healthy_accuracy", ("--accuracy", "on"), True),
    ("healthy_backend", (), True),
    ("healthy_backend", ("--accuracy", "on"), True),
    ("healthy_dropout", (), True),
    ("healthy_eight_bits", (), True),
    ("healthy_aoti", (), True),
    ("healthy_pass_function", (), True),
    ("healthy_pass_lowering", (), True),
    ("healthy_pass_fusion", (), True),
    ("healthy_pass_pre_grad", (), True),
    ("healthy_pass_backend", (), True),
    ("healthy_pass_joint", (), True),
)
ROWS = (*AOT, *AOT_INDUCTOR, *DYNAMO, *OTHERS, *HIGHER_ORDER, *ENVIRONMENT, *DEFECTS, *PASSES, *HIDDEN)
