"""Which expressions of a program are of the compiler."""

from __future__ import annotations

import ast

import pytest

from bot.reduce.source.text.compiler_calls import ENTRIES, EXPORTERS, MAKES_CALLABLE, TRACES, compiles_or_exports, entries, is_compiler


def expression(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body


def test_names_that_are_known() -> None:
    older = {"compile", "export", "aoti_compile_and_package", "aot_compile", "optimize", "draft_export", "export_for_training"}
    assert older | {"optimize_assert", "standalone_compile", "compile_fx", "aot_module", "export_for_inference"} <= ENTRIES
    assert {"export", "draft_export", "export_for_training"} <= EXPORTERS < TRACES < ENTRIES < MAKES_CALLABLE
    assert {"aoti_load_package", "load_package", "aot_load", "module"} <= MAKES_CALLABLE - ENTRIES
    assert not TRACES & {"compile", "optimize"}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("torch.compile(f)\n", 1),
        ("from torch import compile\ncompile(f)\n", 1),
        ("re.compile(f)\n", 0),
        ("torch.export.export(f)\n", 2),
        ("functorch.compile.aot_function(f)\n", 2),
        ("torch._inductor.standalone_compile(g)\n", 1),
        ("torch.export.load(path)\n", 1),
        ("torch.load(path)\n", 0),
    ],
)
def test_mentions_of_entry_points(text: str, number: int) -> None:
    assert entries(text) == number


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("torch.compile", True),
        ("torch.export.export", True),
        ("export.export", True),
        ("export", True),
        ("torch._dynamo.optimize_assert", True),
        ("inductor.aoti_compile_and_package", True),
        ("torch.export.export_for_training", True),
        ("compile", False),
        ("re.compile", False),
        ("model.export", False),
        ("self._export", False),
        ("torch.export.load", False),
        ("f()", False),
    ],
)
def test_what_compiles(code: str, known: bool) -> None:
    assert is_compiler(expression(code)) is known


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("torch.compile", True),
        ("torch.export.export", True),
        ("torch.export.draft_export", True),
        ("torch._inductor.compile", False),
        ("torch._inductor.aot_compile", False),
        ("compile", False),
    ],
)
def test_what_a_program_can_be_written_around(code: str, known: bool) -> None:
    assert compiles_or_exports(expression(code)) is known
