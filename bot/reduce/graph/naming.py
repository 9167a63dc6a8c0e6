"""Names of the values of a graph: short, legal in Python, and equal for equal programs."""

from __future__ import annotations

import builtins
import keyword
import re
from dataclasses import replace

from bot.reduce.graph.form import Arg, Graph, Input, Meta, Node, Ref, kernels, refs
from bot.reduce.graph.rewrite import rename, rename_in

# Names that the script itself uses, and attributes of torch.nn.Module.
_SCRIPT = {"torch", "operator", "math", "copy", "zlib", "base64", "numpy", "self"}
_SCRIPT |= {"Repro", "model", "module", "out", "expected", "actual", "ep", "path", "run"}
_MODULE = frozenset(
    """add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval extra_repr float forward
    get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia named_buffers named_children named_modules
    named_parameters parameters register_buffer register_module register_parameter requires_grad_ set_extra_state set_submodule
    share_memory state_dict to to_empty train training type xpu zero_grad""".split()  # noqa: SIM905
)
_RESERVED = _SCRIPT | set(keyword.kwlist) | set(keyword.softkwlist) | set(dir(builtins))
_INPUT_NAMES = ("x", "y", "z")


def canonical(graph: Graph) -> Graph:
    """The `graph` with names that depend only on its operations, so that equal programs have equal text.

    Inputs become x, y, z, x3, ...; operations are named after what they do; a constant keeps its name if it is legal; bodies of
    higher-order operations are true_fn, false_fn, body_fn, ... in order.
    """
    return _canonical(graph, _Names(_own(graph)))


def is_legal(graph: Graph) -> bool:
    """Whether a script can use the names in `graph` as they are."""
    return _legal(graph, _own(graph))


def _own(graph: Graph) -> set[str]:
    """Names of the user's own functions and kernels that the graph calls; nothing else may have these names."""
    targets = (node.target for node in graph.all_nodes())
    return {target.split(".")[1] for target in targets if target.startswith("__main__.")} | kernels(graph)


def bind_symbols(graph: Graph) -> Graph:
    """The `graph` without the integer inputs that are the size of a tensor input: `x.size(0)` says the same.

    An integer input whose symbol belongs to no tensor input stays.
    """
    sizes: dict[str, tuple[str, int]] = {}
    for item in graph.inputs:
        if item.meta.is_tensor:
            for dim, symbol in enumerate(item.meta.symbols):
                if symbol is not None:
                    sizes.setdefault(symbol, (item.name, dim))
    kept: list[Input] = []
    nodes: list[Node] = []
    for item in graph.inputs:
        symbol = item.meta.symbols[0] if item.meta.kind == "int" and item.meta.symbols else None
        if symbol is None or symbol not in sizes:
            kept.append(item)
            continue
        owner, dim = sizes[symbol]
        if any(item.name in node.uses() for node in graph.nodes) or item.name in set(refs(graph.output)):
            nodes.append(Node(item.name, "function", "torch.ops.aten.sym_size.int", (Ref(owner), dim), (), Meta("int", symbols=(symbol,))))
    return replace(graph, inputs=tuple(kept), nodes=(*nodes, *graph.nodes))


class _Names:
    """Names of one scope; functions share one set over all scopes."""

    def __init__(self, functions: set[str] | None = None) -> None:
        self.functions = set() if functions is None else functions
        self.taken: set[str] = set()
        self._tried: dict[str, int] = {}  # lower numbers are taken: a graph can have thousands of one operation

    def take(self, base: str, *, reserved: set[str] = _RESERVED) -> str:
        i = self._tried.get(base, 0)
        name = f"{base}_{i}" if i else base
        while name in reserved or name in self.taken or name in self.functions or (i == 0 and _looks_like_input(base)):
            i += 1
            name = f"{base}_{i}"
        self._tried[base] = i
        self.taken.add(name)
        return name


def _looks_like_input(name: str) -> bool:
    return re.fullmatch(r"[xyz]|x\d+", name) is not None


def _canonical(graph: Graph, names: _Names) -> Graph:
    new: dict[str, str] = {}
    bodies: list[tuple[str, Graph]] = []
    for name, body in graph.bodies:
        inner = _canonical(body, _Names(names.functions))
        chosen = _function_name(name, names.functions)
        new[name] = chosen
        bodies.append((chosen, inner))
    for item in graph.inputs:
        if item.keyword is not None and _is_word(item.keyword):
            new[item.name] = item.keyword
            names.taken.add(item.keyword)
    count = 0
    for item in graph.inputs:
        if item.name in new:
            continue
        found = ""
        while not found or found in names.taken:
            found = _INPUT_NAMES[count] if count < len(_INPUT_NAMES) else f"x{count}"
            count += 1
        new[item.name] = found
        names.taken.add(found)
    for item in graph.constants:
        new[item.name] = names.take(_identifier(item.name), reserved=_RESERVED | _MODULE)
    for node in graph.nodes:
        new[node.name] = names.take(_base(node.target))
    change: dict[str, Arg] = {old: Ref(now) for old, now in new.items()}

    return Graph(
        inputs=tuple(replace(item, name=new[item.name]) for item in graph.inputs),
        constants=tuple(replace(item, name=new[item.name]) for item in graph.constants),
        nodes=tuple(replace(rename_in(node, change), name=new[node.name]) for node in graph.nodes),
        output=rename(graph.output, change),
        bodies=tuple(bodies),
    )


def _function_name(name: str, taken: set[str]) -> str:
    words = {"true": "true", "false": "false", "fwd": "forward", "forward": "forward", "bwd": "backward", "backward": "backward"}
    word = next((w for key, w in (*words.items(), ("cond", "cond"), ("body", "body")) if key in name), None)
    base = f"{word}_fn" if word else "fn"
    found, i = base, 0
    while found in taken:
        i += 1
        found = f"{base}_{i}"
    taken.add(found)
    return found


def _identifier(name: str) -> str:
    found = re.sub(r"\W", "_", name).strip("_") or "constant"
    return found if not found[0].isdigit() else f"c{found}"


def _base(target: str) -> str:
    parts = target.split(".")
    word = parts[3] if target.startswith("torch.ops.") and len(parts) > 3 else parts[-1]
    return re.sub(r"\W", "_", word).strip("_") or "op"


def _legal(graph: Graph, functions: set[str]) -> bool:
    for name, body in graph.bodies:
        if not _legal(body, functions) or name in functions or not _plain(name):
            return False
        functions.add(name)
    # a parameter that is passed by keyword must have that name, even if it shadows a builtin
    fit = all(item.name == item.keyword if _is_word(item.keyword) else _plain(item.name) for item in graph.inputs)
    fit = fit and all(_plain(item.name) and item.name not in _MODULE for item in graph.constants)
    own = [*(item.name for item in graph.sources), *(node.name for node in graph.nodes)]
    return fit and all(_plain(node.name) for node in graph.nodes) and len(own) == len(set(own)) and functions.isdisjoint(own)


def _is_word(name: str | None) -> bool:
    return name is not None and name.isidentifier() and not keyword.iskeyword(name)


def _plain(name: str) -> bool:
    return name.isidentifier() and name not in _RESERVED
