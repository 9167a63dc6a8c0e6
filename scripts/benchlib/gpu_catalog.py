"""What `scripts/gpu-check` runs, and what has to come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

PROGRAMS = Path(__file__).with_name("gpu_programs")
PARTS: Mapping[int, str] = {
    1: "errors of the compiler",
    2: "errors while it runs",
    3: "wrong numbers",
    4: "healthy programs",
    5: "passes of one's own, at each hook",
    6: "as without a GPU: the same repro",
}


@dataclass(frozen=True)
class Scenario:
    """One program and its result.

    `status` may name alternatives with `|`. `ops`: at most so many operations may be left. `seconds`: at most so many in all.
    `says` is a regex on what the repro prints alone. `has` are regexes that the repro has to match, `lacks` what it must not.
    `needs` are packages beyond torch, `options` those of the command line. `twin` is a scenario that has to come to the same repro.
    """

    name: str
    part: int
    says: str = ""
    status: str = "minimized"
    ops: int | None = 1
    lines: int = 20
    seconds: float | None = None
    search: float | None = None
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    program: str = ""
    options: tuple[str, ...] = ()
    twin: str = ""

    @property
    def text(self) -> str:
        """The program."""
        return self.program or (PROGRAMS / f"{self.name}.py").read_text(encoding="utf-8")


def _changed(base: str, *changes: tuple[str, str]) -> str:
    """The program `base` with each `(old, new)` of `changes` made once.

    Raises:
        ValueError: one of them is not in it.
    """
    text = (PROGRAMS / f"{base}.py").read_text(encoding="utf-8")
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"{base}: {old!r} is there {text.count(old)} times")
        text = text.replace(old, new)
    return text


_LOADS = "    value = tl.load(source + place + 800000000000, mask=place < count)\n"
_ASIDE = "    value = tl.load((source.to(tl.int64) + 2).to(tl.pointer_type(tl.float32)) + place, mask=place < count - 1)\n"
_TRAP = """\
    value = tl.load(source + place, mask=place < count)
    value = tl.inline_asm_elementwise("trap; mov.b32 $0, $1;", "=r,r", [value], dtype=tl.float32, is_pure=False, pack=1)
"""
_THREE = "    value = tl.load(source + place, mask=place < count) + tl.arange(0, 3)\n"
_MISALIGNED, _LAUNCH, _COMPILE = (_changed("illegal_access", (_LOADS, wrong)) for wrong in (_ASIDE, _TRAP, _THREE))
_RUN_TIME, _ACCURACY = (_changed("dynamo_compile_error", ("compile_error", f"{kind}_error")) for kind in ("runtime", "accuracy"))
_PACKAGES = "    torch._inductor.aoti_compile_and_package(torch.export.export(net, (x,)))\n"
_TWICE = """\
    program = torch.export.export(torch.export.unflatten(torch.export.export(net, (x,))), (x,))
    torch._inductor.aoti_compile_and_package(program)
"""
_LOADED = """\
    package = torch._inductor.aoti_compile_and_package(torch.export.export(net, (x,)))
    out = torch._inductor.aoti_load_package(package)(x)
    torch.testing.assert_close(out, net(x))
"""
_PLANT = 'torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "{}"\n'
_UNFLATTENED = _changed("aoti_compile", (_PACKAGES, _TWICE))
_AOTI_NUMBERS = _changed("aoti_compile", (_PACKAGES, _LOADED), ("compile_error", "accuracy"))
_AOTI_HEALTHY = _changed("aoti_compile", (_PACKAGES, _LOADED), (_PLANT.format("compile_error") + "\n\n", "\n"))
_FP8_HEALTHY = _changed("fp8_scaled_mm", (_PLANT.format("accuracy") + "\n\n", "\n"))
_PLANTED = r"CompilationError|InductorError|NameError"
_CLOSE = r"AssertionError"
# a call, not the setting that makes it wrong
_RELU = r"relu(\.default)?\(|ReLU\("
_QUIET = {"status": "not_reproduced", "ops": None}

_HOOKED = """\
# a pass at {hook}
import torch
import torch._inductor.config as config


def wrong(graph):
    graph = getattr(graph, "graph", graph)
    for node in graph.nodes:
        if node.target in (torch.cos, torch.ops.aten.cos.default):
            {action}


{setting}


@torch.compile
def f(x):
    return torch.cos(torch.tanh(x) * 2).exp() + x


with torch.no_grad():
    f(torch.linspace(0, 3, 64, device="cuda"))
"""
_BACKEND = """\
from torch._inductor.codegen.common import (
    get_scheduling_for_device,
    get_wrapper_codegen_for_device,
    init_backend_registration,
    register_backend_for_device,
)
from torch._inductor.custom_graph_pass import CustomGraphModulePass


class Wrong(CustomGraphModulePass):
    def __call__(self, gm):
        wrong(gm)

    def uuid(self):
        return None


init_backend_registration()
scheduling, wrapper = get_scheduling_for_device("cuda"), get_wrapper_codegen_for_device("cuda")
register_backend_for_device("cuda", scheduling, wrapper, device_custom_pass=Wrong())"""
_SETTINGS = {
    name: f"config.{name} = wrong"
    for name in (
        "pre_grad_custom_pass",
        "joint_custom_pre_pass",
        "joint_custom_post_pass",
        "post_grad_custom_pre_pass",
        "post_grad_custom_post_pass",
    )
} | {"device_custom_pass": _BACKEND}
_ACTIONS = {
    "raises": 'raise RuntimeError("no cosine here")',
    "numbers": "node.target = torch.sin if node.target is torch.cos else torch.ops.aten.sin.default",
}


def _hooks() -> tuple[Scenario, ...]:
    rows = []
    # each hook raises or spoils numbers, by turns: both kinds at three hooks
    for number, (hook, setting) in enumerate(_SETTINGS.items()):
        kind = ("raises", "numbers")[number % 2]
        text = _HOOKED.format(hook=hook, setting=setting, action=_ACTIONS[kind])
        said = "no cosine here" if kind == "raises" else _CLOSE
        rows.append(Scenario(f"{hook}_{kind}", 5, said, lines=40, has=("cos",), lacks=("tanh", r"\bexp\b"), program=text))
    return tuple(rows)


_ON_A_GPU = (
    Scenario("aot_compile", 1, _PLANTED, seconds=35, search=5, has=(_RELU,), lacks=("sin",)),
    Scenario("transformer_663", 1, _PLANTED, seconds=50, has=(_RELU,), lacks=("Linear", "softmax")),
    Scenario("bert_compile", 1, _PLANTED, seconds=45, has=(_RELU,), lacks=("transformers",), needs=("transformers",)),
    Scenario("reduce_overhead_half", 1, _PLANTED, has=(_RELU,), lacks=("onv2d",)),
    Scenario("max_autotune", 1, _PLANTED, has=(_RELU,), lacks=("softmax",)),
    Scenario("backward_only", 1, _PLANTED, has=(_RELU,), lacks=("tanh",)),
    Scenario("aoti_compile", 1, _PLANTED, has=(_RELU,), lacks=("igmoid",)),
    Scenario("aoti_unflattened", 1, _PLANTED, has=(_RELU,), lacks=("igmoid",), program=_UNFLATTENED),
    Scenario("dynamo_compile_error", 1, "ReluCompileError", has=(_RELU,), lacks=("torch.sin",)),
    Scenario("dynamo_runtime_error", 1, "ReluRuntimeError", has=(_RELU,), lacks=("torch.sin",), program=_RUN_TIME),
    Scenario("cpu_and_cuda", 1, "ReluCompileError", has=(_RELU,), lacks=("torch.sin",)),
    Scenario("streams_in_graph", 1, _PLANTED, has=(_RELU,), lacks=("igmoid", "Stream")),
    Scenario("kernel_compile", 1, "CompilationError", seconds=90, has=(r"arange\(0, 3\)",), lacks=("Linear", "softmax"), program=_COMPILE),
    Scenario("device_assert", 2, "device-side assert", seconds=90, has=(_RELU,), lacks=("Linear",)),
    Scenario("side_stream", 2, "device-side assert", has=(_RELU,), lacks=("tanh",)),
    Scenario("illegal_access", 2, "illegal memory access", seconds=90, lacks=("Linear", "softmax")),
    Scenario("autotuned_kernel", 2, "illegal memory access", lines=25, lacks=("Linear", "softmax")),
    Scenario("misaligned", 2, "misaligned address", lacks=("Linear", "softmax"), program=_MISALIGNED),
    Scenario("launch_failure", 2, "unspecified launch failure", lacks=("Linear", "softmax"), program=_LAUNCH),
    Scenario("out_of_memory", 2, "OutOfMemoryError", ops=3),
    Scenario("wasteful_pass", 2, "OutOfMemoryError", lines=40, has=(r"amax(\.default)?\(",), lacks=("Linear", "softmax")),
    Scenario("overwritten_output", 2, "overwritten by a subsequent run", ops=2, lacks=("GELU", "gelu")),
    Scenario("aot_accuracy", 3, _CLOSE, seconds=60, has=(_RELU,), lacks=("sin",)),
    # both of its operations are needed
    Scenario("half_constant", 3, _CLOSE, status="reproduced", seconds=60, ops=2, options=("--accuracy", "strict")),
    Scenario("aoti_accuracy", 3, _CLOSE, seconds=60, has=(_RELU,), lacks=("igmoid",), program=_AOTI_NUMBERS),
    Scenario("dynamo_accuracy_error", 3, _CLOSE, seconds=60, has=(_RELU,), lacks=("torch.sin",), program=_ACCURACY),
    Scenario("bert_fp16_accuracy", 3, _CLOSE, seconds=60, has=(_RELU,), needs=("transformers",)),
    Scenario("gpt2_bf16_training", 3, _CLOSE, seconds=60, has=(_RELU,), needs=("transformers",)),
    Scenario("resnet18_inference", 3, _CLOSE, seconds=60, has=(_RELU,), needs=("torchvision",)),
    Scenario("resnet18_training", 3, _CLOSE, seconds=60, has=(_RELU,), lacks=("onv2d", "rsqrt"), needs=("torchvision",)),
    Scenario("fp8_scaled_mm", 3, _CLOSE, seconds=60, has=(_RELU,), lacks=("_scaled_mm",)),
    # it may take longer alone than a third of five minutes, which is what a run has of them
    Scenario("mobilenetv3_autocast", 3, _CLOSE, seconds=300, ops=3, has=(_RELU,), needs=("torchvision",), options=("--budget", "600s")),
    *(Scenario(name, 4, **_QUIET) for name in ("half_constant_healthy", "healthy_plain", "healthy_dropout")),
    Scenario("healthy_aoti", 4, **_QUIET, program=_AOTI_HEALTHY),
    Scenario("healthy_fp8", 4, **_QUIET, program=_FP8_HEALTHY),
    *_hooks(),
)  # fmt: skip
# What compiles for a GPU that is not there has to come to the same text as with the GPU.
_ALSO_WITHOUT = (
    "aot_compile", "transformer_663", "max_autotune", "backward_only", "cpu_and_cuda", "kernel_compile", "reduce_overhead_half",
    "healthy_plain",
    "pre_grad_custom_pass_raises", "joint_custom_post_pass_raises", "post_grad_custom_post_pass_raises",
)  # fmt: skip
_ARCH = ("--cuda-arch", "90")
SCENARIOS = (
    *_ON_A_GPU,
    *(
        replace(
            one,
            name=f"{one.name}_without",
            part=6,
            program=one.text,
            twin=one.name,
            seconds=None,
            search=None,
            options=("--cuda-arch", "90"),
        )
        for one in _ON_A_GPU
        if one.name in _ALSO_WITHOUT
    ),
)
