"""Scripts that PyTorch dumps: `repro.py`, `fx_graph_runnable.py`, `minifier_launcher.py`.

Each ends in a call of `run_repro` with a command, which may be its minifier. What comes before it (the graph, how its inputs are made, the
settings) is kept. Instead of that call, the graph is compiled and called once.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bot.engine.inputs.taken import NotUnderstood
from bot.inside.variables import is_setting

_LEVELS = {"after_aot": "aot", "after_dynamo": "dynamo", "aoti": "aot_inductor"}
_IMPORTED = re.compile(r"^\s*from torch\._dynamo\.repro\.(?:after_aot|after_dynamo|aoti) import run_repro", re.M)
_SYMBOL = re.compile(r"(?:[us]|zu?f)\d+")
_VERSION = re.compile(r"^# torch version: (\S+)", re.M)
# Settings of the run that dumped it: what it wrote, and where. `disable` cannot have been on when the graph was compiled.
_OF_A_RUN = re.compile(
    r"\.(?:trace\.|repro_|debug_dir_root|log_file_name|verbose\b|compile_threads|worker_)|\.fx_graph_\w*cache|cache_dir"
    r"|_dynamo\.config\.disable\b"
)
_IMPORTS = (
    *("import torch", "import torch._inductor.inductor_prims", "from torch import device, tensor", "import torch.fx as fx"),
    *("from math import inf", "from torch._dynamo.testing import rand_strided", "from torch._dynamo.debug_utils import InputReader"),
)
_COMMON = {
    ("torch", frozenset({"device", "tensor"})),
    ("math", frozenset({"inf"})),
    ("torch._dynamo.testing", frozenset({"rand_strided"})),
    ("torch._dynamo.debug_utils", frozenset({"run_fwd_maybe_bwd"})),
}
# If inputs were not saved, torch makes every integer a zero, which hides many failures. So other values are tried as well, if eager accepts
# them: an index may be too large.
_INTEGRAL = re.compile(r"\bdtype(?:_hint)?=torch\.(?:u?int\d+|bool)\b")
_DRAWN = """\
def drawn(module, args, most):
    integral = [a for a in args if isinstance(a, torch.Tensor) and not (a.is_floating_point() or a.is_complex())]
    for value in integral:
        flat = torch.empty(0, dtype=value.dtype, device=value.device).set_(value.untyped_storage())
        flat.random_(0, min(most, 2 if value.dtype == torch.bool else torch.iinfo(value.dtype).max))
    try:
        with torch.no_grad():
            module(*(a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args))
    except Exception:
        return most == 1
    return True
"""
_MOST = "(1, 2, 256)"
# A dump has only the name of a backend. Without this check, a missing one would look like a failure of the compiler.
_NO_BACKEND = "the backend {!r} with which this graph was dumped is not registered here: give the script that it came from"


@dataclass(frozen=True)
class Dump:
    """One dumped graph.

    `level` is aot, dynamo or aot_inductor; `command` is what the script would have done. `settings`, `environ` and `body` are its
    statements, `program` is the file of its exported program, `groups` are its process groups. `how` holds the keywords of its `run_repro`
    call.
    """

    level: str
    command: str
    torch: str
    ops: int
    devices: frozenset[str]
    environ: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    groups: str = ""
    program: str = ""
    how: Mapping[str, Any] = field(default_factory=dict)

    @property
    def launcher(self) -> bool:
        """Whether it would have started PyTorch's minifier."""
        return self.command != "run"


def is_dump(text: str) -> bool:
    """Whether `text` looks like a script that PyTorch dumped."""
    return "run_repro(" in text and _IMPORTED.search(text) is not None


def read(text: str) -> Dump:
    """The graph in the `text` of a dumped script. Raises NotUnderstood if it is not Python, if its parts are not where PyTorch puts them,
    or if its inputs have sizes that it does not know."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = (text.splitlines()[error.lineno - 1 : error.lineno] or [""])[0] if isinstance(error, SyntaxError) and error.lineno else ""
        raise NotUnderstood(
            f"a script dumped by PyTorch that is no Python: {line.strip()[:120]!r}"
            " (PyTorch could not write this graph down); the program that it came from is needed, or a TORCH_TRACE log"
        ) from error
    call = _call(tree)
    if call is None:
        raise NotUnderstood("a script dumped by PyTorch without its call of run_repro: it ends too soon")
    if unknown := _sizes_without_value(tree):
        raise NotUnderstood(
            f"a script dumped by PyTorch whose inputs have sizes that depend on data ({', '.join(unknown[:4])}), and that does not say"
            " what they were; the program that it came from is needed"
        )
    level, how = call
    found = Dump(
        level=level,
        command=str(how.get("command", "run")),
        torch=match[1] if (match := _VERSION.search(text)) else "",
        ops=_ops(tree),
        devices=_devices(text),
        how=how,
    )
    return _with_statements(found, tree, text)


def _call(tree: ast.Module) -> tuple[str, dict[str, Any]] | None:
    """The level of the dump, and the constant keywords of its `run_repro` call."""
    level = None
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch._dynamo.repro."):
            level = _LEVELS.get((node.module or "").rpartition(".")[2], level)
    for node in ast.walk(tree):
        if level and isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "run_repro":
            how = {k.arg: k.value.value for k in node.keywords if k.arg and isinstance(k.value, ast.Constant)}
            return level, how
    return None


def _sizes_without_value(tree: ast.Module) -> list[str]:
    """The symbols used to make the inputs that are never given a value. PyTorch has none for a size that depends on data."""
    known = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    loads = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "load_args"]
    names = {node.id for function in loads for node in ast.walk(function) if isinstance(node, ast.Name)}
    return sorted(filter(_SYMBOL.fullmatch, names - known), key=lambda name: (len(name), name))


def _with_statements(found: Dump, tree: ast.Module, text: str) -> Dump:
    lines = text.splitlines()
    environ, settings, imports, body = [], [], [], []
    groups = program = ""
    for node in tree.body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        source = "\n".join(lines[first - 1 : node.end_lineno])
        if isinstance(node, ast.If):
            groups = groups or _groups(node)
            continue  # the call, and what PyTorch needs to compile its own queries
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if not _is_common(node):
                imports.append(source.strip())
        elif (name := _variable(node)) is not None:
            if is_setting(name):
                environ.append(source.strip())
        elif _is_setting_of_torch(node):
            if not _OF_A_RUN.search(source.partition("=")[0]):
                settings.append(source.strip())
        elif (path := _program(node)) is not None:
            program = path
        elif not _is_leftover(node):
            body.append(source)
    return replace(
        found,
        environ=tuple(environ),
        settings=tuple(settings),
        imports=tuple(imports),
        body=tuple(body),
        groups=groups,
        program=program,
    )


def _is_common(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether our scripts have this import in any case, or have no use for it."""
    names = {alias.name for alias in node.names}
    if isinstance(node, ast.Import):
        return f"import {node.names[0].name}" in _IMPORTS or names <= {"os", "torch._dynamo", "torch.fx"}
    return (node.module, frozenset(names)) in _COMMON


def _variable(node: ast.stmt) -> str | None:
    """The environment variable that a statement sets or removes."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and ast.unparse(node.targets[0]).startswith("os.environ["):
        key = node.targets[0].slice if isinstance(node.targets[0], ast.Subscript) else None
        return str(key.value) if isinstance(key, ast.Constant) else ""
    if isinstance(node, ast.Expr) and ast.unparse(node).startswith("os.environ.pop("):
        return ""
    return None


def _program(node: ast.stmt) -> str | None:
    """The file of the exported program that a statement loads."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "torch.export.load":
        first = node.value.args[0] if node.value.args else None
        return str(first.value) if isinstance(first, ast.Constant) else None
    return None


def _is_setting_of_torch(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and re.match(r"torch\.(?:\w+\.)*_?config\.", ast.unparse(node.targets[0])) is not None


def _is_leftover(node: ast.stmt) -> bool:
    """Whether only PyTorch's own run of the script needs this."""
    if ast.unparse(node).startswith("torch.ops.load_library('//"):
        return True  # a name in a build system, not a file
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) in ("isolate_fails_code_str", "mod", "load_args._version")
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _groups(node: ast.If) -> str:
    """The process groups, as the script writes them."""
    calls = (c for c in ast.walk(node) if isinstance(c, ast.Call) and ast.unparse(c.func) == "setup_fake_process_groups")
    return next((ast.unparse(call.args[0]) for call in calls if call.args), "")


def _ops(tree: ast.Module) -> int:
    """The number of statements in `forward` that compute something."""
    return sum(map(_computes, (s for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name == "forward" for s in f.body)))


def _computes(statement: ast.stmt) -> bool:
    # PyTorch writes `relu = torch.ops...(x);  x = None`; reading an attribute or an item is not an operation
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(
        statement.value, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare)
    )


def _devices(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\bdevice(?:\(type=|=(?:torch\.device\()?|\()['\"]?(cuda|xpu|mps|hpu)", text))


# --- as scripts of our own


def script(dumps: Iterable[tuple[str, Dump, Path | None]], torch: str = "") -> str:
    """A script that compiles and calls each graph in turn.

    Args:
        dumps: For each graph its name, the graph, and the directory of its recorded inputs (None: random ones are made) or, for an exported
            program, its file.
        torch: The version of torch that will run it. Settings that another version dumped may not exist there.
    """
    listed = list(dumps)
    header = (
        ["import os", "", *dict.fromkeys(line for _, d, _ in listed for line in d.environ), ""]
        if any(d.environ for _, d, _ in listed)
        else []
    )
    imports = dict.fromkeys([*_IMPORTS, *(line for _, d, _ in listed for line in d.imports)])
    lines = [*header, *imports, ""]
    for index, (name, dump, saved) in enumerate(listed):
        suffix = f"_{index}" if len(listed) > 1 else ""
        if len(listed) > 1:
            lines.append(f"# graph {name}")
        lines += [*_settings(dump, torch), *_renamed(dump.body, suffix), "", *_call_of(dump, suffix, saved), ""]
    if any(map(_draws, ((d, saved) for _, d, saved in listed))):
        lines.insert(len(header) + len(imports) + 1, f"\n{_DRAWN}")
    return "\n".join(lines).rstrip() + "\n"


def _draws(graph: tuple[Dump, Path | None]) -> bool:
    """Whether a graph, given with the directory of its recorded inputs, has integral inputs that were not saved. Not on a GPU: there, an
    index that is too large ends the context, and with it whatever runs afterwards."""
    dump, saved = graph
    return saved is None and not dump.devices and any("def load_args" in source and _INTEGRAL.search(source) for source in dump.body)


def _settings(dump: Dump, torch: str) -> Iterator[str]:
    if not dump.settings:
        return
    if dump.torch.partition("+")[0] == torch.partition("+")[0]:
        yield from dump.settings
        return
    yield "import contextlib"
    yield ""
    for line in dump.settings:
        # this version of torch may not know the setting
        yield "with contextlib.suppress(AttributeError):"
        yield textwrap.indent(line, "    ")


def _renamed(body: Iterable[str], suffix: str) -> Iterator[str]:
    for source in body:
        named = re.sub(r"\Aclass Repro\b", f"class Repro{suffix}", source, flags=re.M)
        yield re.sub(r"\Adef load_args\b", f"def load_args{suffix}", named)


def _call_of(dump: Dump, suffix: str, saved: Path | None) -> Iterator[str]:
    """The lines that compile the graph and call it."""
    if dump.level == "aot_inductor":
        yield f"exported_program = torch.export.load({str(saved)!r})"
        yield "path = torch._inductor.aoti_compile_and_package(exported_program, inductor_configs=config_patches)"
        yield "args, kwargs = exported_program.example_inputs"
        yield "torch._inductor.aoti_load_package(path)(*args, **kwargs)"
        return
    yield "torch.manual_seed(0)"
    yield f"reader{suffix} = InputReader(save_dir={str(saved) if saved else None!r})"
    yield f"load_args{suffix}(reader{suffix})"
    if dump.groups:
        yield "from torch._dynamo.repro.after_aot import setup_fake_process_groups"
        yield f"setup_fake_process_groups({dump.groups})"
    arguments = [f"Repro{suffix}()"]
    if dump.level == "dynamo":
        backend = dump.how.get("backend")
        if backend not in (None, "inductor"):
            arguments.append(f"backend={backend!r}")
            yield f"if {backend!r} not in torch._dynamo.list_backends(exclude_tags=()):"
            yield f"    raise RuntimeError({_NO_BACKEND.format(backend)!r})"
        device = "cuda" if dump.devices else "cpu"
        context = f"with torch.autocast({device!r}):" if dump.how.get("autocast") else ""
    else:
        arguments += ["dynamic=True"] if dump.how.get("tracing_mode") == "symbolic" else []
        context = "with torch.no_grad():"
    compiled = f"torch.compile({', '.join(arguments)})"
    into = ""
    if _draws((dump, saved)):
        yield f"compiled = {compiled}"
        compiled = "compiled"
    if context:
        yield context
        into = "    "
    if compiled == "compiled":
        yield f"{into}for most in {_MOST}:"
        yield f"{into}    if drawn(Repro{suffix}(), reader{suffix}.args, most):"
        into += "        "
    if dump.level != "dynamo":
        yield f"{into}{compiled}(*reader{suffix}.args)"
        return
    yield f"{into}out = {compiled}(*reader{suffix}.args)"
    yield "losses = [leaf.sum() for leaf in torch.utils._pytree.tree_leaves(out) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]"
    yield "if losses:"
    yield "    sum(losses).backward()"
