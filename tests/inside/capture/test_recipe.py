"""How a program was compiled and called, read from torch's state."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo.config as dynamo_config  # noqa: E402
import torch._inductor.config as inductor_config  # noqa: E402

from bot.inside.capture import recipe  # noqa: E402

Changed = Callable[[], "dict[str, Any]"]


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The user's script, as the module that runs."""
    module = type(sys)("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return vars(module)


class TestDescribed:
    """What leads to an object of the user's."""

    def test_a_top_level_name(self, main: dict[str, Any]) -> None:
        exec("def my_pass(graph): pass\nalias = my_pass", main)
        found = recipe.described(main["my_pass"])
        assert (found["text"], found["name"], found["expressions"][:2], found["wanted"]) == (
            None,
            "my_pass",
            ["my_pass", "alias"],
            ["my_pass", "alias"],
        )
        json.dumps(found)

    def test_an_instance_of_a_class(self, main: dict[str, Any]) -> None:
        exec("class Pass:\n    def __call__(self, graph): pass", main)
        found = recipe.described(main["Pass"]())
        assert (found["name"], found["expressions"], found["wanted"]) == ("Pass", ["Pass()"], ["Pass"])

    def test_a_partial_goes_by_its_name_in_the_script(self, main: dict[str, Any]) -> None:
        exec("import functools\ndef f(n, graph): pass\nmy_pass = functools.partial(f, 3)", main)
        assert recipe.described(main["my_pass"])["name"] == "my_pass"

    def test_made_inside_a_function(self, main: dict[str, Any]) -> None:
        """Only its definition leads to it."""
        from collections import namedtuple

        found = recipe.described(TestDescribed.test_made_inside_a_function)
        assert found["wanted"] == []
        assert found["name"] == "test_made_inside_a_function"
        assert recipe.described(namedtuple("Pair", "a b")(1, 2))["definitions"] == []

    def test_a_plain_value(self) -> None:
        assert recipe.described(3) == {"text": "3", "name": "3", "expressions": ["3"], "wanted": [], "definitions": []}


@pytest.fixture
def changed() -> Callable[[], dict[str, Any]]:
    """What differs from the default now, and did not before: other tests of this process may have turned some entries."""
    before = recipe.config_entries()
    return lambda: {name: entry for name, entry in recipe.config_entries().items() if before.get(name) != entry}


class TestConfig:
    """Entries that differ from their defaults."""

    def test_looking_warns_of_nothing(self, changed: Changed) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert changed() == {}

    def test_what_was_set(self, changed: Changed) -> None:
        def my_pass(graph: Any) -> None: ...

        values = {"freezing": True, "cpp.simdlen": 1, "post_grad_custom_post_pass": my_pass, "compile_threads": 3, "trace.enabled": True}
        with inductor_config.patch(values), dynamo_config.patch(verbose=True, assume_static_by_default=False):
            found = changed()
        assert {name: entry["text"] for name, entry in found.items()} == {
            "torch._inductor.config.freezing": "True",
            "torch._inductor.config.cpp.simdlen": "1",
            "torch._inductor.config.post_grad_custom_post_pass": None,
            "torch._dynamo.config.assume_static_by_default": "False",
        }
        assert found["torch._inductor.config.post_grad_custom_post_pass"]["name"] == "my_pass"

    def test_special_numbers(self, changed: Changed) -> None:
        with inductor_config.patch({"comprehensive_padding": False, "realize_reads_threshold": float("inf")}):
            texts = {name.rsplit(".", 1)[1]: entry["text"] for name, entry in changed().items()}
        assert texts == {"comprehensive_padding": "False", "realize_reads_threshold": "torch.inf"}

    def test_set_back_to_the_default_is_not_a_setting(self, changed: Changed) -> None:
        with inductor_config.patch(freezing=inductor_config.freezing):
            assert changed() == {}


class TestContexts:
    """What was in force around the call."""

    def test_none(self) -> None:
        assert recipe.contexts() == []

    @pytest.mark.parametrize(
        "text",
        [
            "torch.no_grad()",
            "torch.inference_mode()",
            'torch.autocast("cpu", dtype=torch.float16)',
        ],
    )
    def test_one(self, text: str) -> None:
        with eval(text, {"torch": torch}):
            assert recipe.contexts() == [text]

    def test_two(self) -> None:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            assert recipe.contexts() == ["torch.no_grad()", 'torch.autocast("cpu", dtype=torch.bfloat16)']


@pytest.mark.parametrize(
    ("line", "undo"),
    [
        ("torch.set_default_dtype(torch.float64)", "torch.set_default_dtype(torch.float32)"),
        ("torch.use_deterministic_algorithms(True)", "torch.use_deterministic_algorithms(False)"),
        ("torch.use_deterministic_algorithms(True, warn_only=True)", "torch.use_deterministic_algorithms(False)"),
        ('torch.set_float32_matmul_precision("high")', 'torch.set_float32_matmul_precision("highest")'),
        ("torch.backends.mkldnn.enabled = False", "torch.backends.mkldnn.enabled = True"),
        ("torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.benchmark = False"),
        ("torch.backends.cuda.enable_flash_sdp(False)", "torch.backends.cuda.enable_flash_sdp(True)"),
    ],
)
def test_setup_lines_repeat_the_setting(line: str, undo: str) -> None:
    assert recipe.setup() == []
    exec(line)
    try:
        assert recipe.setup() == [line]
    finally:
        exec(undo)


def test_a_cap_on_a_gpu_s_allocator_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {0: 1.0, 1: 0.0199999999}
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(shares))
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", shares.__getitem__, raising=False)
    assert recipe.setup() == ["torch.cuda.set_per_process_memory_fraction(0.02, 1)"]


def test_backend_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.codegen.common as common

    def my_pass(graph: Any) -> None: ...

    monkeypatch.setattr(common, "custom_backend_passes", {"cpu": my_pass, "cuda": None})
    found = recipe.backend_passes()
    assert list(found) == ["cpu"]
    assert found["cpu"]["name"] == "my_pass"
