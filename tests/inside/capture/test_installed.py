"""Which functions of a program the compiler holds."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import bot
from bot.engine.capture.hints import defined_at
from bot.inside.capture.installed import installed

HEAD = """import torch, functools
import torch._inductor.compile_fx, torch._inductor.lowering as lowering
import torch._inductor.fx_passes.post_grad as post_grad
from torch._inductor import decomposition, ir
from torch._inductor.lowering import lowerings, make_pointwise, register_lowering
from torch._inductor.pattern_matcher import CallFunction, KeywordArg, register_graph_pattern
aten = torch.ops.aten
def merely_defined(x): return x
"""
WAYS = {
    "by a decorator": "@register_lowering(aten.cos)\ndef HELD(x): return x",
    "by an assignment": "def HELD(x): return x\nlowerings[aten.relu.default] = HELD",
    "closed over": "def HELD(x): return x\nlowerings[aten.sin.default] = make_pointwise(HELD)",
    "a lambda": "HELD = lambda x: x\nlowerings[aten.exp.default] = HELD",
    "with some arguments": "def HELD(a, x): return x\nlowerings[aten.neg.default] = functools.partial(HELD, 1)",
    "as a decomposition": "def HELD(x): return x\ndecomposition.decompositions[aten.gelu.default] = HELD",
    "in place of a method": "def HELD(self): return 1\nir.Pointwise.is_extern = HELD",
    "in place of a function": "def HELD(x): return x\nlowering.clone = HELD",
    "inside another function": "def HELD():\n    @register_lowering(aten.tan)\n    def inner(x): return x\nHELD()",
    "for a pattern": (
        "@register_graph_pattern(CallFunction(aten.relu.default, KeywordArg('x')), pass_dict=post_grad.pass_patterns[2])\n"
        "def HELD(match, x): ..."
    ),
}


BESIDE = """import torch
from torch._inductor import ir
from torch._inductor.lowering import register_lowering


@register_lowering(torch.ops.aten.tanh)
def of_a_module(x):
    return x


class Own:
    def shown(self):
        return "own"


ir.Pointwise.shown = Own.shown
"""


@pytest.mark.slow
def test_what_the_compiler_holds_is_found(tmp_path: Path) -> None:
    text, names = HEAD, []
    for index, way in enumerate(WAYS.values()):
        names.append(f"held_{index}")
        text += way.replace("HELD", names[-1]) + "\n"
    text += "import helpers.low, site_packaged\nfrom bot.inside.capture.installed import installed\nprint(installed(__file__))\n"
    files = {"program.py": text, "helpers/low.py": BESIDE, "env/site-packages/site_packaged.py": BESIDE.replace("tanh", "erf")}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content.replace("Own", "Theirs") if "site" in name else content, encoding="utf-8")
    env = {"PYTHONPATH": os.pathsep.join([str(Path(bot.__file__).parents[1]), str(tmp_path / "env" / "site-packages")])}
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode == 0, ran.stderr
    lines, beside = ast.literal_eval(ran.stdout)
    assert defined_at(lines, text) == tuple(names)
    assert beside == ["of_a_module"], "what a package from elsewhere registered is not the project's; it was the last to take `shown`"


def test_of_a_file_without_any_none_is() -> None:
    assert installed(__file__) == ([], [])


def test_what_the_program_gave_away_itself_is_held_too() -> None:
    lines, names = installed(__file__, [len, test_of_a_file_without_any_none_is])
    assert (lines, names) == ([test_of_a_file_without_any_none_is.__code__.co_firstlineno], [])
