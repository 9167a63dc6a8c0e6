"""The lines of a script that compare compiled results with eager ones: within a tolerance, or both against float64."""

from __future__ import annotations

from collections.abc import Iterable

from bot.reduce.graph.form import Arg, Graph, Input, Meta, Recipe, Ref, refs

# (rtol, atol) below which a difference is only rounding: a fused pair of operations rounds once, eager rounds twice.
_LOW_PRECISION = {"bfloat16": (1.6e-2, 1e-2), "float16": (1e-2, 1e-2)}
# In PyTorch's rule, the error of compiled results against float64 may be this many times eager's; more for low precision or few elements.
_TIMES, _FEW_TIMES, _FEW = 2, 3, 1000
_RAISED = {"float32": "double()", "float16": "double()", "bfloat16": "double()", "complex64": "to(torch.complex128)"}
_LOWER = frozenset({"torch.float32", "torch.float", "torch.float16", "torch.half", "torch.bfloat16", "torch.complex64"})
_CASTS = frozenset({"float", "half", "bfloat16", "cfloat"})
_FACTORIES = frozenset({"zeros", "ones", "full", "empty", "arange", "eye", "linspace", "tensor", "scalar_tensor"})
# For operations that name a dtype of lower precision.
FLOAT64 = """\
LOW = (torch.float32, torch.bfloat16, torch.float16)


class Float64(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func.__name__ in ("float", "half", "bfloat16"):
            return args[0].double()
        args, kwargs = torch.utils._pytree.tree_map(
            lambda value: torch.float64 if isinstance(value, torch.dtype) and value in LOW else value, (args, kwargs or {})
        )
        out = func(*args, **kwargs)
        return out.double() if isinstance(out, torch.Tensor) and out.dtype in LOW else out"""


def names_types(graph: Graph) -> bool:
    """Whether an operation of `graph` names a dtype of lower precision, so that float64 inputs alone do not make it compute in float64."""
    for node in graph.all_nodes():
        words = node.target.split(".")
        if any(getattr(leaf, "text", None) in _LOWER for leaf in node.leaves()) or not _CASTS.isdisjoint(words[-1:]):
            return True
        if not _FACTORIES.isdisjoint(words) and not any(node.uses()):
            return True
    return False


def in_float64(item: Input, fresh: bool) -> str:
    """The input `item` for the run in float64; `fresh`: the module changes its inputs."""
    raised = _RAISED.get(item.meta.dtype) if item.meta.is_tensor else None
    if raised is not None:
        return f"{item.name}.{raised}"
    return f"{item.name}.clone()" if fresh and item.meta.is_tensor else item.name


def tolerance(recipe: Recipe, dtypes: Iterable[str]) -> tuple[float, ...]:
    """(rtol, atol) for comparing values of these `dtypes`: the program's own, from `recipe`, or else the configured one, raised for dtypes
    of low precision."""
    if recipe.tolerance is not None:
        return recipe.tolerance
    rules = [_LOW_PRECISION[dtype] for dtype in sorted(set(dtypes)) if dtype in _LOW_PRECISION]
    usual = recipe.repro_tolerance
    return max([usual, *(rtol for rtol, _ in rules)]), max([usual, *(atol for _, atol in rules)])


def within(given: tuple[float, ...]) -> list[str]:
    """The lines that compare within a tolerance; `given` is (rtol, atol), or () for the defaults of `torch.testing.assert_close`."""
    words = "".join(f"{name}={scientific(value)}, " for name, value in zip(("rtol", "atol"), given))  # noqa: B905 - both or neither
    return [f"torch.testing.assert_close(actual, expected, {words}equal_nan=True)"]


def against_float64(recipe: Recipe, output: Arg, metas: dict[str, Meta], gradients: bool) -> list[str]:
    """The lines that state PyTorch's rule on `actual`, `expected` and `exact`: the compiled result may be farther from float64 than
    eager's, but only by a factor.

    The tolerance is the one in `recipe`. `output` is what the module returns, made of values with these `metas`; `gradients`: all three
    are flat lists of outputs and gradients.
    """
    found = [metas.get(name, Meta()) for name in refs(output)]
    few = gradients or any(meta.elements < _FEW or meta.dtype != "float32" for meta in found)
    tol, times = recipe.repro_tolerance, _FEW_TIMES if few else _TIMES
    single = isinstance(output, Ref) and not gradients and bool(found) and found[0].dtype.startswith(("float", "bfloat"))
    a, e, x = ("actual", "expected", "exact") if single else ("a", "e", "x")
    size = "" if all(meta.dtype.startswith(("float", "bfloat")) for meta in found) else ".abs()"  # for complex numbers
    allowed = f"rtol={scientific(tol)}, atol={scientific(tol)}, equal_nan=True"
    lines = [
        f"close = torch.allclose({a}, {e}, {allowed})",
        f"wrong, usual = ((out - {x}){size}.square().mean().sqrt() for out in ({a}, {e}))  # errors against float64",
        f'assert close or wrong <= {times} * usual + {scientific(tol / 10)}, f"off by {{wrong:.1e}}, eager by {{usual:.1e}}"',
    ]
    if single:
        return lines
    flat = gradients or (isinstance(output, (tuple, list)) and all(isinstance(item, Ref) for item in output))
    floats = all(meta.is_tensor and meta.dtype.startswith(("float", "bfloat", "complex")) for meta in found)
    three = ("actual", "expected", "exact")
    if flat:
        each = ", ".join(three)
    else:
        each = ", ".join(f"torch.utils._pytree.tree_leaves({name})" for name in three)
    body = [f"    {line}" for line in lines]
    if not floats:
        body = ["    if isinstance(e, torch.Tensor) and (e.is_floating_point() or e.is_complex()):", *(f"    {line}" for line in body)]
    return [f"for a, e, x in zip({each}):", *body]


def scientific(value: float) -> str:
    """A tolerance `value` as people write it: 0.016, 1e-3, 1e-5."""
    mantissa, exponent = f"{value:.15e}".split("e")
    short = mantissa.rstrip("0").rstrip(".")
    return f"{short}e{int(exponent)}" if abs(int(exponent)) > 2 else repr(value)
