"""Python text for arguments and operations, as a person would write them."""

from __future__ import annotations

import keyword
import re

from bot.reduce.graph.form import Arg, Code, Mapping, Node, Ref, Slice, is_launch

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@"}
_ARITHMETIC |= {"and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}
_BINARY = _ARITHMETIC | _COMPARISONS
_IN_PLACE = {f"i{name.rstrip('_')}": f"{sign}=" for name, sign in _ARITHMETIC.items()}
_UNARY = {"neg": "-", "pos": "+", "invert": "~", "inv": "~", "not_": "not "}
_SIZES = {"sym_size": "size", "sym_stride": "stride", "sym_numel": "numel", "sym_storage_offset": "storage_offset"}
# The prefix of higher-order operations, whose public names differ.
_HIGHER = "torch.ops.higher_order."


def text(arg: Arg, names: dict[str, str]) -> str:
    """The text of `arg`; `names` gives the expression for each value (`self.weight`) that is not reached by its own name."""
    if isinstance(arg, Ref):
        return names.get(arg.name, arg.name)
    if isinstance(arg, Code):
        return arg.text
    if isinstance(arg, str):
        return quoted(arg)
    if isinstance(arg, Slice):
        return f"slice({text(arg.start, names)}, {text(arg.stop, names)}, {text(arg.step, names)})"
    if isinstance(arg, Mapping):
        return "{" + ", ".join(f"{quoted(key)}: {text(item, names)}" for key, item in arg.items) + "}"
    if isinstance(arg, list):
        return "[" + ", ".join(text(item, names) for item in arg) + "]"
    if isinstance(arg, tuple):
        inside = ", ".join(text(item, names) for item in arg)
        return f"({inside},)" if len(arg) == 1 else f"({inside})"
    if isinstance(arg, (float, complex)):
        return number(arg)
    return repr(arg)


def number(value: float | complex) -> str:
    """A float or complex `value` as text; special values by torch's names."""
    if isinstance(value, complex):
        parts = (value.real, value.imag)
        # `1-0j` is 1+0j, and `-1j` is -0-1j: with signed zeros, `complex(...)` is needed
        if all(p - p == 0 and str(p) != "-0.0" for p in parts) and (value.real or value.imag >= 0):
            return repr(value)
        return f"complex({', '.join(number(p) for p in parts)})"
    if value != value:
        return "torch.nan"
    if value - value != 0:
        return "torch.inf" if value > 0 else "-torch.inf"
    return repr(value)


def quoted(value: str) -> str:
    """`value` in double quotes, unless that needs more escapes than single quotes."""
    plain = repr(value)
    return f'"{plain[1:-1]}"' if plain[0] == "'" and '"' not in plain else plain


def index(arg: Arg, names: dict[str, str]) -> str:
    """The text between the brackets of `x[...]` for the index `arg`; `names` as in `text`."""
    if isinstance(arg, tuple) and arg:
        inside = ", ".join(_index_item(item, names) for item in arg)
        return f"{inside}," if len(arg) == 1 else inside
    return _index_item(arg, names)


def _index_item(arg: Arg, names: dict[str, str]) -> str:
    if not isinstance(arg, Slice):
        return text(arg, names)
    start, stop, step = ("" if part is None else text(part, names) for part in (arg.start, arg.stop, arg.step))
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


def operation(node: Node, names: dict[str, str]) -> str:
    """The expression that computes `node`; `names` as in `text`."""
    if node.op == "method":
        receiver = _operand(node.args[0], names)
        return f"{receiver}.{node.target}({arguments(node.args[1:], node.kwargs, names)})"
    special = _sugar(node, names)
    if special is not None:
        return special
    return f"{spelled(node.target)}({arguments(node.args, node.kwargs, names)})"


def spelled(target: str) -> str:
    """`target` as written in the script: builtins and the script's own definitions by their bare names."""
    for prefix in ("builtins.", "__main__."):
        if target.startswith(prefix):
            return target.removeprefix(prefix)
    return target


def arguments(args: tuple[Arg, ...], kwargs: tuple[tuple[str, Arg], ...], names: dict[str, str]) -> str:
    """The text between the parentheses of a call with `args` and `kwargs`; `names` as in `text`."""
    parts = [text(item, names) for item in args]
    odd = []
    for key, value in kwargs:
        found = _device(value) if key == "device" else None
        shown = found or text(value, names)
        if key.isidentifier() and not keyword.iskeyword(key):
            parts.append(f"{key}={shown}")
        else:  # some aten arguments are called `from`
            odd.append(f"{quoted(key)}: {shown}")
    if odd:
        parts.append("**{" + ", ".join(odd) + "}")
    return ", ".join(parts)


def _device(arg: Arg) -> str | None:
    found = re.fullmatch(r'torch\.device\(("[\w:]+")\)', arg.text) if isinstance(arg, Code) else None
    return found.group(1) if found else None


def _operand(arg: Arg, names: dict[str, str]) -> str:
    shown = text(arg, names)
    simple = isinstance(arg, (Ref, list, tuple, Mapping)) or (isinstance(arg, int) and arg >= 0) or (isinstance(arg, float) and arg >= 0)
    return shown if simple or re.fullmatch(r"[\w.]+", shown) else f"({shown})"


def _sugar(node: Node, names: dict[str, str]) -> str | None:
    args, target = node.args, node.target
    if target.startswith("operator.") and not node.kwargs:
        name = target.removeprefix("operator.")
        if name in _BINARY and len(args) == 2:
            return f"{_operand(args[0], names)} {_BINARY[name]} {_operand(args[1], names)}"
        if name in _UNARY and len(args) == 1:
            return f"{_UNARY[name]}{_operand(args[0], names)}"
        if name == "abs" and len(args) == 1:
            return f"abs({text(args[0], names)})"
        if name == "getitem" and len(args) == 2:
            return f"{_operand(args[0], names)}[{index(args[1], names)}]"
    if target == "builtins.getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
        return f"{_operand(args[0], names)}.{args[1]}"
    if target.startswith("torch.ops.aten.sym_"):
        name = target.split(".")[3]
        if name in _SIZES and args and isinstance(args[0], Ref) and not node.kwargs:
            return f"{text(args[0], names)}.{_SIZES[name]}({arguments(args[1:], (), names)})"
    if target.startswith(_HIGHER):
        return _higher(target.removeprefix(_HIGHER), node, names)
    return None


def _higher(name: str, node: Node, names: dict[str, str]) -> str | None:
    args = node.args
    if name == "cond" and len(args) == 4 and not node.kwargs:
        return f"torch.cond({arguments(args, (), names)})"
    if name == "while_loop" and len(args) == 4 and not args[3] and not node.kwargs:
        return f"torch._higher_order_ops.while_loop({arguments(args[:3], (), names)})"
    if is_launch(node):
        return f"{text(args[0], names)}[{text(args[1], names)}]({arguments((), node.kwargs, names)})"
    if name == "scan" and scanned(node):
        return _scan(node, names)
    if name == "associative_scan" and combined(node):
        return _associative_scan(node, names)
    if name == "map_impl" and len(args) in (2, 3) and all(isinstance(arg, (list, tuple)) for arg in args[1:]) and not node.kwargs:
        return _map(node, names)
    if name == "tag_activation_checkpoint" and args:
        kwargs = node.kwargs if any(key == "use_reentrant" for key, _ in node.kwargs) else (("use_reentrant", False), *node.kwargs)
        return f"torch.utils.checkpoint.checkpoint({arguments(args, kwargs, names)})"
    if name == "invoke_subgraph" and len(args) >= 2:
        return f"{text(args[0], names)}({arguments(args[2:], node.kwargs, names)})"  # the function is marked at its definition
    if name == "autograd_function_apply" and len(args) >= 2 and isinstance(args[0], Ref):
        return f"{function_class(args[0].name)}.apply({arguments(args[2:], (), names)})"
    if name.startswith("flex_attention") and len(args) == 9 and not node.kwargs and isinstance(args[4], tuple):
        *mask, mask_mod = args[4]
        score_mod, mask_mod = (_closed(fn, held, names) for fn, held in ((args[3], args[7]), (mask_mod, args[8])))
        parts = (*args[:3], score_mod, (*mask, mask_mod), *args[5:7])
        return f"{node.target}({arguments(parts, (), names)})"
    if name == "wrap" and args:
        return f"{text(args[0], names)}({arguments(args[1:], node.kwargs, names)})"
    return None


def scanned(node: Node) -> tuple[int, int] | None:
    """How many tensors `node` carries and how many it runs over, if it is a `scan`; None for anything else.

    Dynamo and AOTAutograd record it flat, `scan(fn, carried, over, closed)`, but Dynamo only accepts the public function, whose body takes
    a carry and an item and returns both.
    """
    args = node.args
    if node.target != f"{_HIGHER}scan" or node.kwargs or len(args) not in (3, 4) or not isinstance(args[0], Ref):
        return None
    if not all(isinstance(arg, (list, tuple)) for arg in args[1:]):
        return None
    return len(args[1]), len(args[2])  # type: ignore[arg-type]


def combined(node: Node) -> int | None:
    """How many tensors `node` runs over, if it is an `associative_scan`; None for anything else.

    It is recorded flat as well, `associative_scan(fn, over, closed)` along the first dimension; the body of the public function takes two
    items and returns one.
    """
    args = node.args
    if node.target != f"{_HIGHER}associative_scan" or node.kwargs or len(args) not in (2, 3) or not isinstance(args[0], Ref):
        return None
    return len(args[1]) if all(isinstance(arg, (list, tuple)) for arg in args[1:]) else None  # type: ignore[arg-type]


def _scan(node: Node, names: dict[str, str]) -> str:
    function, carried, over, *closed = node.args
    shown = _of_two(function, closed, ("carry", "xs"), names)
    # it returns a carry and a list of results, each of them a list: flatten them, as they were recorded
    return f"sum(torch._higher_order_ops.scan({shown}, {text(carried, names)}, {text(over, names)}), [])"


def _associative_scan(node: Node, names: dict[str, str]) -> str:
    function, over, *closed = node.args
    assert isinstance(over, (list, tuple))
    # the result has the structure of the inputs: a list, as it was recorded
    shown = _of_two(function, closed, ("left", "right"), names)
    return f"torch._higher_order_ops.associative_scan({shown}, {text(list(over), names)}, 0)"


def _of_two(function: Arg, closed: list[Arg], parameters: tuple[str, str], names: dict[str, str]) -> str:
    """The function for a body as one with two arguments, whatever else it closes over."""
    shown = text(function, names)
    held = arguments(tuple(closed[0]), (), names) if closed else ""  # type: ignore[arg-type]
    if not held:
        return shown
    first, second = (_unlike(word, held) for word in parameters)
    return f"lambda {first}, {second}: {shown}({first}, {second}, {held})"


def _map(node: Node, names: dict[str, str]) -> str:
    function, over, closed = (*node.args, ())[:3]
    assert isinstance(over, (list, tuple))
    assert isinstance(closed, (list, tuple))
    shown, item = text(function, names), text(over, names)
    if len(over) == 1:
        item = text(over[0], names)
    else:
        shown = f"lambda xs, *args: {shown}(*xs, *args)"
    return f"torch._higher_order_ops.map({', '.join([shown, item, *(text(arg, names) for arg in closed)])})"


def _unlike(word: str, shown: str) -> str:
    """The word, with underscores appended until it does not occur in the text."""
    while re.search(rf"\b{word}\b", shown):
        word += "_"
    return word


def _closed(function: Arg, held: Arg, names: dict[str, str]) -> Arg:
    """The function for a body, with its last arguments bound."""
    if not isinstance(held, (tuple, list)) or not held:
        return function
    return Code(f"lambda *args: {text(function, names)}(*args, {arguments(tuple(held), (), names)})")


def function_class(forward: str) -> str:
    """The name of the `torch.autograd.Function` made from the body `forward`: `ForwardFn` for `forward_fn`."""
    return "".join(part.capitalize() for part in forward.split("_"))


def in_place(node: Node, tensor: bool, names: dict[str, str]) -> str | None:
    """The statement for a `node` that changes its first argument and is written without a result; None for others.

    `tensor`: the first argument is known to be a tensor (a number cannot be changed in place). `names` as in `text`.
    """
    args = node.args
    if node.target == "operator.setitem" and len(args) == 3:
        return f"{_operand(args[0], names)}[{index(args[1], names)}] = {text(args[2], names)}"
    if node.target == "operator.delitem" and len(args) == 2:
        return f"del {_operand(args[0], names)}[{index(args[1], names)}]"
    if node.target == "builtins.setattr" and len(args) == 3 and isinstance(args[1], str) and args[1].isidentifier():
        return f"{_operand(args[0], names)}.{args[1]} = {text(args[2], names)}"
    name = node.target.removeprefix("operator.")
    if node.target.startswith("operator.") and name in _IN_PLACE and len(args) == 2 and tensor and isinstance(args[0], Ref):
        owner = text(args[0], names)
        if owner.isidentifier():  # `self.weight += x` would assign to the module as well
            return f"{owner} {_IN_PLACE[name]} {text(args[1], names)}"
    return None
