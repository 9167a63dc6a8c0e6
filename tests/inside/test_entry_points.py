"""The table of entry points: free of torch, and complete for what takes the compiler out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bot.inside.entry_points import AT_ONCE, COMPILING, PLACES, Sort, last_names, places

ROOT = Path(__file__).parents[2]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=100).stdout


def test_each_place_is_named_once_and_each_sort_is_used() -> None:
    found = [place for names in PLACES.values() for place in names]
    assert len(found) == len(set(found))
    assert {sort for sort, names in PLACES.items() if names} == set(Sort)
    assert AT_ONCE < COMPILING


def test_names_by_sort() -> None:
    assert places(Sort.COMPILE_LIBRARY) == ("torch._inductor.aot_compile", "torch._export.aot_compile")
    assert last_names(Sort.LOAD_PACKAGE) == {"aoti_load_package", "load_package", "aot_load"}


def test_the_table_is_imported_without_torch() -> None:
    assert run("import sys, bot.inside.entry_points; print('torch' in sys.modules)") == "False\n"


REPLACED = """
import importlib, json
from bot.inside.eager import compiler_out
from bot.inside.entry_points import Sort, places

def there():
    found = {}
    for place in places(*Sort):
        owner, _, name = place.rpartition(".")
        module, _, holder = owner.rpartition(".")
        try:
            at = importlib.import_module(owner)
        except ImportError:
            try:
                at = getattr(importlib.import_module(module), holder, None)
            except ImportError:
                continue
        if hasattr(at, name):
            found[place] = getattr(at, name)
    return found

before = there()
compiler_out.take_out()
after = there()
print(json.dumps({place: after[place] is not before[place] for place in before}))
"""


def test_every_entry_point_that_torch_has_is_replaced() -> None:
    pytest.importorskip("torch")
    replaced = json.loads(run(REPLACED).splitlines()[-1])
    assert {"torch.compile", "torch.nn.Module.compile", "torch.export.export", "torch._inductor.aoti_compile_and_package"} <= set(replaced)
    assert len(replaced) > 20
    assert [place for place, is_other in replaced.items() if not is_other] == []
