"""Faults planted into the compiler from outside, and the count of what PyTorch's minifier asks.

Both are texts of a `sitecustomize` module. A directory that holds it on PYTHONPATH makes every process of either tool see the
same broken compiler, as with a real bug: nothing of it stands in the program, and no dump can lose it.
"""

from __future__ import annotations

from collections.abc import Sequence

# Runs a function on a module of torch right after that module was loaded; costs nothing where it never is.
_HEADER = """\
import importlib.abc
import importlib.util
import functools
import sys

after = {}


class After(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        patch = after.pop(name, None)
        if patch is None:
            return None
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            patch(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, After())
"""

_POST_GRAD = """

def break_post_grad(module):
    real = module.post_grad_passes

    @functools.wraps(real)
    def post_grad_passes(gm, *args, **kwargs):
        if WANTED <= {str(node.target) for node in gm.graph.nodes}:
            raise RuntimeError("planted: this graph cannot be optimized")
        return real(gm, *args, **kwargs)

    module.post_grad_passes = post_grad_passes


after["torch._inductor.fx_passes.post_grad"] = break_post_grad
"""

_CPP = """

def break_cpp(module):
    real = module.GraphLowering.codegen

    @functools.wraps(real)
    def codegen(self):
        code = real(self)
        if WANTED <= {str(node.target) for node in self.module.graph.nodes}:
            code[0].value = code[0].value.replace('extern "C"', 'planted_no_type extern "C"')
        return code

    module.GraphLowering.codegen = codegen


after["torch._inductor.graph"] = break_cpp
"""

_LOWERING = """

def break_lowering(module):
    def no_lowering(*args, **kwargs):
        raise NotImplementedError("planted: no lowering for this")

    for target in module.lowerings:
        if str(target) in WANTED:
            module.lowerings[target] = no_lowering


after["torch._inductor.lowering"] = break_lowering
"""

_BODIES = {"post_grad": _POST_GRAD, "cpp": _CPP, "lowering": _LOWERING}
# What the failing output says.
MESSAGES = {
    "post_grad": "planted: this graph cannot be optimized",
    "cpp": "planted_no_type",
    "lowering": "planted: no lowering for this",
}

# Seen from inside the process that minimizes, the same for all of PyTorch's modes. It only watches: every question goes
# to the tester unchanged. "ops" as the contract of result.json counts them.
_COUNTER = """

import hashlib
import json
import os
import time


def watch_minifier(module):
    real = module.minifier

    def ops_of(gm):
        computing = 0
        for node in gm.graph.nodes:
            name = str(node.target)
            idle = node.op in ("placeholder", "output", "get_attr") or "getitem" in name or "sym_size" in name
            if not idle and "load_tensor" not in name and not name.startswith("_guards_fn"):
                computing += 1
        return computing

    def facts(gm, inputs):
        tensors = [x for x in inputs if hasattr(x, "numel")]
        return {"nodes": len(gm.graph.nodes), "ops": ops_of(gm), "elements": sum(int(x.numel()) for x in tensors)}

    def write(entry):
        with open(os.environ["BENCH_QUERIES"], "a") as log:
            log.write(json.dumps(entry) + "\\n")

    @functools.wraps(real)
    def minifier(gm, inputs, module_fails, dump_state=module.dump_state, **options):
        def asked(gm, inputs):
            shapes = [(str(x.shape), str(x.dtype)) if hasattr(x, "shape") else repr(x) for x in inputs]
            key = hashlib.sha256((gm.code + repr(shapes)).encode()).hexdigest()
            started = time.time()
            entry = {"what": "query", "key": key, **facts(gm, inputs)}
            fails = None
            try:
                fails = module_fails(gm, inputs)
            finally:
                write({**entry, "fails": fails, "seconds": time.time() - started})
            return fails

        def accepted(gm, inputs):
            write({"what": "accepted", **facts(gm, inputs)})
            return dump_state(gm, inputs)

        found = real(gm, inputs, asked, accepted, **options)
        write({"what": "end"})
        return found

    module.minifier = minifier


if "BENCH_QUERIES" in os.environ:
    after["torch._functorch.fx_minifier"] = watch_minifier
"""


def fault(kind: str, targets: Sequence[str]) -> str:
    """A broken compiler: `post_grad` and `cpp` fail where all `targets` are in one graph, `lowering` at any of them.

    Raises:
        KeyError: there is no such kind.
    """
    return _HEADER + f"\nWANTED = {set(targets)!r}\n" + _BODIES[kind]


def counter(fault_text: str) -> str:
    """`fault_text` (may be empty) and a watch over PyTorch's minifier, which writes to the file that BENCH_QUERIES names."""
    return (fault_text or _HEADER) + _COUNTER
