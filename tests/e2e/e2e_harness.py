"""Runs the command line as a user does, and repros as a reader does: each in a process of its own."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.workers import toolchain

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).parent / "cases"
# A run of one case on two busy cores; a test that takes longer has a fault that a longer wait does not mend.
RUN_LIMIT = 600.0
REPRO_LIMIT = 240.0


def environment(extra: Mapping[str, str] | None = None, *, ours: bool) -> dict[str, str]:
    """This process's environment with what could color a run taken out; with `ours` the package is on the path."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "PYTHON", "PYTEST", "DUMP_AOTI", "AOTINDUCTOR"))}
    if ours:
        kept |= {"PYTHONPATH": str(ROOT), "TORCH_MINIFY_CACHE_DIR": os.environ["TORCH_MINIFY_CACHE_DIR"]}
    return {**kept, **(extra or {})}


@dataclass(frozen=True)
class Finished:
    """A process that ended: exit status (negative: the signal), standard output, standard error, seconds."""

    status: int
    out: str
    err: str
    seconds: float

    @property
    def text(self) -> str:
        return self.out + self.err


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], limit: float, stdin: str | None = None) -> Finished:
    """Run to the end. A process over its limit is killed with all its group, and fails the test with what it had said."""
    start = time.monotonic()
    # files, not pipes: a grandchild that is left over would hold a pipe open
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        child = subprocess.Popen(
            argv, cwd=cwd, env=dict(env), stdout=out, stderr=err, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        late = False
        try:
            child.communicate(stdin.encode() if stdin is not None else None, timeout=limit)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            kill_group(child)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    if late:
        raise AssertionError(f"still running after {limit:.0f} s: {' '.join(argv)}\n{texts[0][-3000:]}\n{texts[1][-3000:]}")
    return Finished(child.returncode, texts[0], texts[1], time.monotonic() - start)


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """End what is left of a process group that we started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def command(*arguments: str | Path) -> list[str]:
    """`torch-minify ...`."""
    return [str(Path(sys.executable).with_name("torch-minify")), *map(str, arguments)]


def minify(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, limit: float = RUN_LIMIT, stdin: str | None = None
) -> Finished:
    """`torch-minify run ...` to its end."""
    return run(command("run", *arguments), cwd=cwd, env=environment(env, ours=True), limit=limit, stdin=stdin)


@dataclass(frozen=True)
class Answer:
    """A result directory, and how the process that wrote it ended."""

    directory: Path
    process: Finished

    def __post_init__(self) -> None:
        # what is proven counts all the same, so no row would see it
        assert "torch-minify itself failed" not in self.process.text, self.process.text[-4000:]

    @property
    def result(self) -> dict[str, Any]:
        return dict(json.loads((self.directory / "result.json").read_text(encoding="utf-8")))

    @property
    def repro(self) -> str:
        return (self.directory / "repro.py").read_text(encoding="utf-8")

    def described(self) -> str:
        """For the message of a failing test."""
        parts = [f"exit status {self.process.status}", self.process.text[-4000:]]
        for name in ("result.json", "repro.py"):
            if (self.directory / name).exists():
                parts += [f"--- {name}", (self.directory / name).read_text(encoding="utf-8")]
        log = self.directory / "original" / "log.txt"
        if log.exists():
            parts += ["--- the end of original/log.txt", log.read_text(encoding="utf-8", errors="replace")[-3000:]]
        return "\n".join(parts)


def minify_script(script: Path, tmp: Path, *options: str, env: Mapping[str, str] | None = None, limit: float = RUN_LIMIT) -> Answer:
    """Minimize one script into a new directory below `tmp`."""
    out = tmp / "minified"
    return Answer(out, minify(script, "--out", out, *options, cwd=tmp, env=env, limit=limit))


def compiling_into(cache: Path) -> dict[str, str]:
    """The variables by which torch compiles into `cache`, which is cold but for the probes of vector instructions, twelve seconds each
    time."""
    toolchain.seed(cache)
    return {"TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCHINDUCTOR_COMPILE_THREADS": "1"}


def run_alone(repro: Path, limit: float = REPRO_LIMIT) -> Finished:
    """The repro by itself: a copy of one file in an empty directory, cold caches, our package not on the path."""
    with tempfile.TemporaryDirectory(prefix="repro-alone-") as name:
        place = Path(name)
        shutil.copy(repro, place / "repro.py")
        env = environment(compiling_into(place / "cache"), ours=False)
        return run([sys.executable, "repro.py"], cwd=place, env=env, limit=limit)


def exported_program_opens(file: Path) -> Finished:
    """`torch.export.load` in a fresh process; prints the operators of the graph."""
    code = "import sys, torch; p = torch.export.load(sys.argv[1]);print([str(n.target) for n in p.graph.nodes if n.op == 'call_function'])"
    return run([sys.executable, "-c", code, str(file)], cwd=file.parent, env=environment(ours=False), limit=REPRO_LIMIT)


def code_lines(text: str) -> int:
    """Lines that are neither blank nor a comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("#"))


def without_pass(text: str) -> str:
    """The repro with every assignment to a custom-pass setting, and every registration of one, made harmless.

    Where the pass was to be handed over there is None instead: what remains must pass, or the pass is not the culprit.
    """
    hooks = re.compile(r"(joint_custom_(pre|post)_pass|post_grad_custom_(pre|post)_pass|pre_grad_custom_pass|device_custom_pass)$")

    class Disarm(ast.NodeTransformer):
        count = 0

        def visit_Assign(self, node: ast.Assign) -> ast.AST:
            names = [t.attr for t in node.targets if isinstance(t, ast.Attribute)]
            names += [ast.unparse(t.value) for t in node.targets if isinstance(t, ast.Subscript)]
            if any(hooks.search(name) or name.endswith("custom_backend_passes") for name in names):
                self.count += 1
                node.value = ast.Constant(None)
            return self.generic_visit(node)

        def visit_keyword(self, node: ast.keyword) -> ast.AST:
            if node.arg and hooks.search(node.arg):
                self.count += 1
                node.value = ast.Constant(None)
            return self.generic_visit(node)

        def visit_Dict(self, node: ast.Dict) -> ast.AST:
            for i, key in enumerate(node.keys):
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and hooks.search(key.value):
                    self.count += 1
                    node.values[i] = ast.Constant(None)
            return self.generic_visit(node)

        def visit_Call(self, node: ast.Call) -> ast.AST:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name == "register_backend_for_device" and len(node.args) > 5:
                self.count += 1
                node.args[5] = ast.Constant(None)
            if (
                name == "setattr"
                and len(node.args) == 3
                and isinstance(node.args[1], ast.Constant)
                and hooks.search(str(node.args[1].value))
            ):
                self.count += 1
                node.args[2] = ast.Constant(None)
            return self.generic_visit(node)

    disarm = Disarm()
    tree = disarm.visit(ast.parse(text))
    if not disarm.count:
        raise AssertionError(f"no custom pass is set in the repro:\n{text}")
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


@contextlib.contextmanager
def started(*arguments: str | Path, cwd: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """`torch-minify run ...` under way, and the file that collects what it says; ended, with its group, on leaving."""
    said = cwd / "said.txt"
    with said.open("wb") as stream:
        child = subprocess.Popen(
            command("run", *arguments), cwd=cwd, env=environment(ours=True), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield child, said
        finally:
            kill_group(child)


def wait_for_queries(directory: Path, count: int, child: subprocess.Popen[bytes], limit: float = 300.0) -> int:
    """Wait until so many queries are in `reduction.jsonl`; how many there are."""
    ledger, end = directory / "reduction.jsonl", time.monotonic() + limit
    while time.monotonic() < end:
        lines = ledger.read_text(encoding="utf-8").count("\n") if ledger.exists() else 0
        if lines >= count:
            return lines
        if child.poll() is not None:
            raise AssertionError(f"ended with {child.returncode} after {lines} queries")
        time.sleep(0.1)
    raise AssertionError(f"fewer than {count} queries after {limit:.0f} s")
