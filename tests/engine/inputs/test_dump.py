"""Scripts that PyTorch dumps, read without running them. The texts are torch 2.13's, shortened (torch/_dynamo/repro/after_aot.py,
after_dynamo.py and aoti.py); `tests/e2e/test_inputs.py` has torch make its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bot.engine.inputs import dump
from bot.engine.inputs.taken import NotUnderstood

AOT = """\
s0 = 5

import os
os.environ['TORCHINDUCTOR_CACHE_DIR'] = '/tmp/somebody'
os.environ['TORCHINDUCTOR_FREEZING'] = '1'
os.environ['PYTORCHBOT_GH_TOKEN'] = 'secret'
os.environ.pop('TORCHDYNAMO_REPRO_AFTER', None)

import torch
from torch import tensor, device
import torch.fx as fx
from torch._dynamo.testing import rand_strided
from math import inf
import torch._inductor.inductor_prims

import torch._dynamo.config
import torch._inductor.config
import torch._functorch.config
torch._inductor.config.epilogue_fusion = False
torch._inductor.config.trace.enabled = True
torch._dynamo.config.repro_after = 'aot'

isolate_fails_code_str = None

import my_ops

if "__compile_source__" in globals():
    import inspect as __after_aot_inspect

# torch version: 2.13.0+cpu
# torch cuda version: None

from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, arg0_1):
        cos = torch.ops.aten.cos.default(arg0_1);  arg0_1 = None
        getitem = cos[0];  cos = None
        return (getitem,)

def load_args(reader):
    buf0 = reader.storage('7f2c', 60)
    reader.tensor(buf0, (s0, 3), is_leaf=True)  # arg0_1
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='minify', save_dir='/tmp/gone', tracing_mode='symbolic', check_str=None)
        # To run it separately, do
"""
DYNAMO = """\
import os
from math import inf
import torch
from torch._dynamo.debug_utils import run_fwd_maybe_bwd

import torch._dynamo.config

from torch.nn import *
class Repro(torch.nn.Module):
    def forward(self, L_x_ : torch.Tensor):
        l_x_ = L_x_
        y = torch.relu(l_x_);  l_x_ = None
        return (y,)

mod = Repro()

def load_args(reader):
    buf0 = reader.storage(None, 12, device=device(type='cuda', index=0))
    reader.tensor(buf0, (3,), requires_grad=True)  # L_x_
load_args._version = 0

if __name__ == '__main__':
    from torch._dynamo.repro.after_dynamo import run_repro
    run_repro(mod, load_args, accuracy=False, command='run',
        save_dir=None, autocast=True, backend='aot_eager')
"""
AOTI = """\
# from torch.nn import *
import torch
import torch._inductor.inductor_prims
exported_program = torch.export.load('/tmp/minifier_0/checkpoints/exported_program.pt2')
# print(exported_program.graph)
config_patches={'max_autotune': True}
if __name__ == '__main__':
    from torch._dynamo.repro.aoti import run_repro
    with torch.no_grad():
        run_repro(exported_program, config_patches=config_patches, accuracy=False, command='minify', save_dir='/tmp/x', check_str=None)
"""


def test_a_graph_of_aot_keeps_its_inputs_settings_and_imports_and_nothing_of_the_run():
    found = dump.read(AOT)
    assert (found.level, found.command, found.torch, found.ops, found.launcher) == ("aot", "minify", "2.13.0+cpu", 1, True)
    text = dump.script([("0/0", found, Path("/tmp/there"))], "2.13.0+cpu")
    ast.parse(text)
    assert "os.environ['TORCHINDUCTOR_FREEZING'] = '1'" in text
    assert "import my_ops" in text
    assert "torch._inductor.config.epilogue_fusion = False" in text
    assert "s0 = 5" in text
    assert "InputReader(save_dir='/tmp/there')" in text
    assert "torch.compile(Repro(), dynamic=True)(*reader.args)" in text
    for gone in ("secret", "TORCHINDUCTOR_CACHE_DIR", "repro_after", "trace.enabled", "run_repro", "__compile_source__", "isolate_fails"):
        assert gone not in text


def test_a_graph_that_was_compiled_was_not_compiled_with_dynamo_off():
    """A dumper may turn it off while it writes, and then finds it so."""
    setting = "torch._inductor.config.epilogue_fusion"
    off = AOT.replace(setting, f"torch._dynamo.config.disable = True\n{setting}", 1)
    assert "_dynamo.config.disable" in off
    text = dump.script([("0/0", dump.read(off), Path("/tmp/there"))], "2.13.0+cpu")
    assert "_dynamo.config.disable" not in text


def test_what_another_torch_dumped_may_have_settings_that_this_one_has_not():
    text = dump.script([("0/0", dump.read(AOT), None)], "2.15.0")
    assert "with contextlib.suppress(AttributeError):\n    torch._inductor.config.epilogue_fusion = False" in text


def test_integers_that_were_not_saved_are_not_zeros_alone():
    """With zeros, wrong numbers of an image or of a mask do not show."""
    integral = AOT.replace("reader.tensor(buf0,", "reader.tensor(buf0, dtype=torch.uint8, shape=")
    assert integral != AOT
    text = dump.script([("0/0", dump.read(integral), None)])
    ast.parse(text)
    assert text.index("def drawn(") < text.index("class Repro(")
    asked = "    for most in (1, 2, 256):\n        if drawn(Repro(), reader.args, most):\n"
    assert f"with torch.no_grad():\n{asked}            compiled(*reader.args)" in text
    both = dump.script([("0/0", dump.read(integral), None), ("1/0", dump.read(AOT), None)])
    assert both.count("def drawn(") == 1
    assert both.count("if drawn(") == 1
    assert "drawn(" not in dump.script([("0/0", dump.read(integral), Path("/tmp/there"))])
    trains = DYNAMO.replace("reader.tensor(buf0,", "reader.tensor(buf0, dtype=torch.bool, shape=")
    assert "drawn(" not in dump.script([("x", dump.read(trains), None)])  # on a GPU
    trains = trains.replace("device(type='cuda', index=0)", "device(type='cpu')")
    text = dump.script([("x", dump.read(trains), None)])
    ast.parse(text)
    assert "            out = compiled(*reader.args)\nlosses = " in text


def test_a_graph_of_dynamo_is_compiled_by_its_backend_and_trains():
    found = dump.read(DYNAMO)
    assert (found.level, found.launcher, found.devices) == ("dynamo", False, frozenset({"cuda"}))
    text = dump.script([("repro", found, None)])
    ast.parse(text)
    assert "with torch.autocast('cuda'):\n    out = torch.compile(Repro(), backend='aot_eager')(*reader.args)" in text
    assert text.rstrip().endswith("sum(losses).backward()")
    # a backend of the user's own would be reported as what the compiler raised
    assert text.index("not in torch._dynamo.list_backends") < text.index("torch.compile(")


def test_an_exported_program_is_packaged_with_the_options_of_the_dump():
    found = dump.read(AOTI)
    assert (found.level, found.program) == ("aot_inductor", "/tmp/minifier_0/checkpoints/exported_program.pt2")
    text = dump.script([("x", found, Path("/here/exported_program.pt2"))])
    ast.parse(text)
    assert text.count("torch.export.load") == 1
    assert "exported_program = torch.export.load('/here/exported_program.pt2')" in text
    assert "config_patches={'max_autotune': True}" in text


def test_several_graphs_have_names_of_their_own():
    text = dump.script([("0/0", dump.read(AOT), None), ("1/0", dump.read(AOT), None)])
    tree = ast.parse(text)
    assert [node.name for node in tree.body if isinstance(node, ast.ClassDef)] == ["Repro_0", "Repro_1"]
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] == ["load_args_0", "load_args_1"]
    assert "load_args_1(reader_1)" in text


def test_a_graph_that_pytorch_could_not_write_down_is_named_as_such():
    with pytest.raises(NotUnderstood, match=r"self\.true_graph_0 = <lambda>\(\)"):
        dump.read(AOT.replace("        cos =", "        self.true_graph_0 = <lambda>()\n        cos ="))


def test_sizes_that_depend_on_data_and_have_no_value_are_named() -> None:
    unbacked = AOT.replace("(s0, 3)", "(s0, u0 + 3, u12)")
    with pytest.raises(NotUnderstood, match=r"depend on data \(u0, u12\)"):
        dump.read(unbacked)
    assert dump.read(unbacked.replace("s0 = 5", "s0 = 5\nu0 = u12 = 2")).ops == 1


def test_a_script_that_only_speaks_of_run_repro_is_no_dump():
    assert dump.is_dump(AOT)
    assert dump.is_dump(AOTI)
    assert not dump.is_dump("# from torch._dynamo.repro.after_aot import run_repro\nimport torch\n")
    assert not dump.is_dump("def run_repro(): ...\nrun_repro()\n")
