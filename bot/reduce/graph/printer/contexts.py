"""Prints the contexts in a graph (grad modes, autocast and inference mode) as `with` blocks."""

from __future__ import annotations

from collections.abc import Iterator

from bot.reduce.graph.form import Arg, Node, Ref
from bot.reduce.graph.printer.expressions import text


def called_under(node: Node) -> tuple[str, tuple[Arg, ...]] | None:
    """If `node` calls a body under a grad mode or autocast, as export records it: the context, and the body with its arguments. None
    otherwise."""
    name = node.target.removeprefix("torch.ops.higher_order.")
    if name == "wrap_with_set_grad_enabled" and len(node.args) >= 2 and isinstance(node.args[0], bool):
        return _grad_mode(node.args[0]), node.args[1:]
    if name == "wrap_with_autocast" and len(node.args) >= 5:
        return _autocast(node.args[:4]), node.args[4:]
    return None


def _grad_mode(on: bool) -> str:
    return "torch.enable_grad()" if on else "torch.no_grad()"


def _autocast(args: tuple[Arg, ...]) -> str:
    device, dtype, enabled, cache = (*args, None, None, None, None)[:4]
    shown = [text(device, {})]
    shown += [f"dtype={text(dtype, {})}"] if dtype is not None else []
    shown += [f"enabled={text(enabled, {})}"] if enabled not in (True, None) else []
    shown += [f"cache_enabled={text(cache, {})}"] if cache is not None else []
    return f"torch.autocast({', '.join(shown)})"


_ENTER_AUTOCAST = "torch.amp.autocast_mode._enter_autocast"
_EXIT_AUTOCAST = "torch.amp.autocast_mode._exit_autocast"
_ENTER_INFERENCE = "torch.autograd.grad_mode._enter_inference_mode"
_EXIT_INFERENCE = "torch.autograd.grad_mode._exit_inference_mode"
_GRAD = ("torch._C._set_grad_enabled", "torch.set_grad_enabled")


class Regions:
    """Turns the calls in `nodes` by which Dynamo records contexts into `with` blocks, if they nest properly."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.depth = 0
        self._events: dict[int, list[tuple[int, str | None]]] = {}  # by node index: the depth after the node, and the block that it opens
        stack: list[tuple[str, bool]] = []  # name of the call that entered ("" for a grad mode), and the grad mode outside
        mode, nests = True, True
        for i, node in enumerate(nodes):
            if node.target in (_ENTER_AUTOCAST, _ENTER_INFERENCE):
                on = node.args[0] if node.args else True
                inference = f"torch.inference_mode({'' if on is True else text(on, {})})"
                context = _autocast(node.args) if node.target == _ENTER_AUTOCAST else inference
                self._events[i] = [(len(stack), context)]
                stack.append((node.name, mode))
            elif node.target in (_EXIT_AUTOCAST, _EXIT_INFERENCE):
                entered = node.args[0].name if node.args and isinstance(node.args[0], Ref) else ""
                if stack and stack[-1][0] == entered:
                    stack.pop()
                elif any(name == entered for name, _ in stack):
                    nests = False
                self._events[i] = [(len(stack), None)]
            elif node.target in _GRAD and node.op == "function" and node.args and isinstance(node.args[0], bool):
                wanted = node.args[0]
                if stack and stack[-1][0] == "" and stack[-1][1] == wanted:
                    mode = stack.pop()[1]
                    self._events[i] = [(len(stack), None)]
                else:
                    self._events[i] = [(len(stack), _grad_mode(wanted))]
                    stack.append(("", mode))
                    mode = wanted
        if not nests:
            self._events = {}

    def handles(self, i: int) -> bool:
        """Whether the node with index `i` only enters or leaves a context."""
        return i in self._events

    def at(self, i: int) -> Iterator[str]:
        """The lines that replace the node with index `i`; sets `depth` for what follows."""
        for depth, context in self._events[i]:
            if context is not None:
                yield "    " * depth + f"with {context}:"
            self.depth = depth + (context is not None)
