"""Local modules written into the script that imports them."""

from __future__ import annotations

import pytest

from bot.reduce.source.join_modules import inlined, joined

LAYERS = (
    "import math\nimport torch\nfrom .util import scaled\n\nclass Layer:\n    def forward(self, x):\n        return scaled(x, math.pi)\n"
)
UTIL = "import torch\n\ndef scaled(x, by):\n    return torch.mul(x, by)\n\nif __name__ == '__main__':\n    scaled(1, 2)\n"
MODULES = {"pkg.layers": LAYERS, "pkg.util": UTIL}


@pytest.mark.parametrize(
    "script",
    [
        "from pkg.layers import Layer\nimport torch\ntorch.compile(Layer())(2)\n",
        "import torch\nimport pkg.layers\ntorch.compile(pkg.layers.Layer())(2)\n",
        "import torch\nimport pkg.layers as L, pkg.util as U\ntorch.compile(L.Layer())(2)\n",
        "import torch\nfrom pkg import layers\nfrom pkg.util import scaled\ntorch.compile(layers.Layer())(2)\n",
    ],
)
def test_every_way_to_import(script: str) -> None:
    assert inlined(script, MODULES) == (
        "import math\nimport torch\n\n\ndef scaled(x, by):\n    return torch.mul(x, by)\n\n\nclass Layer:\n"
        "    def forward(self, x):\n        return scaled(x, math.pi)\n\n\ntorch.compile(Layer())(2)\n"
    ).replace(
        "import math\nimport torch", "import torch\nimport math" if script.startswith("import torch") else "import math\nimport torch"
    )


def test_an_import_under_another_name_is_bound() -> None:
    found = inlined("from pkg.util import scaled as s\ns(1, 2)\n", MODULES)
    assert found is not None
    assert found.endswith("s = scaled\ns(1, 2)\n")


def run(text: str | None) -> dict[str, object]:
    assert text is not None
    names: dict[str, object] = {}
    exec(text, names)
    return names


def test_two_meanings_of_a_name_become_two_names() -> None:
    modules = {
        "a": "def f():\n    return 'a'\n",
        "b": "import a\n\ndef f(): return 'b'\ndef g(f2=f): return f() + f2() + a.f()\ndef h(f): return f\n",
    }
    script = "from a import f\nimport b\nfrom b import f as of_b\nx = f() + b.g() + of_b() + b.h('p') + b.f()\n"
    found = inlined(script, modules)
    assert run(found)["x"] == "abbabpb"


def test_the_script_may_use_a_modules_name_for_its_own() -> None:
    script = "import h\n\n\ndef make(x):\n    return h.make(x) + 1\n\n\ny = make(3)\n"
    assert run(inlined(script, {"h": "def make(x):\n    return x * 10\n"}))["y"] == 31


def test_two_imports_under_one_name_are_refused() -> None:
    assert inlined("import math as m\nfrom a import f\nf(m)\n", {"a": "import cmath as m\ndef f(x): return m.pi\n"}) is None


@pytest.mark.parametrize(
    "script",
    [
        "def main():\n    from h import make\n    return make(3)\n\n\ny = main()\n",
        "try:\n    from h import make\nexcept ImportError:\n    make = None\ny = make(3)\n",
        "if True:\n    import h\ny = h.make(3)\n",
        "import h as u\n\n\ndef f(u):\n    return u.real\n\n\ny = u.make(f(3))\n",
    ],
)
def test_imports_where_they_stand_in_practice(script: str) -> None:
    assert run(inlined(script, {"h": "log = print\n\n\ndef make(x):\n    return x * 10\n"}))["y"] == 30


def test_what_two_files_assign_alike_is_no_clash() -> None:
    modules = {
        "a": "import logging\nlog = logging.getLogger(__name__)\nA = 1\n",
        "b": "import logging\nlog = logging.getLogger(__name__)\nB = 2\n",
    }
    assert run(inlined("from a import A\nfrom b import B\nx = A + B\n", modules))["x"] == 3


def test_a_module_of_the_own_package() -> None:
    modules = {"pkg": "", "pkg.a": "from . import b\n\n\ndef f():\n    return b.make()\n", "pkg.b": "def make():\n    return 7\n"}
    assert run(inlined("from pkg.a import f\nx = f()\n", modules))["x"] == 7


def test_annotations_stay_unevaluated() -> None:
    modules = {"a": "from __future__ import annotations\n\n\ndef f(x: Later) -> Later:\n    return x\n\n\nclass Later: pass\n"}
    found = inlined("from a import f\nx = f(1)\n", modules)
    assert found is not None
    assert found.startswith("from __future__ import annotations\n")
    assert run(found)["x"] == 1


def test_where_nothing_is_imported_there_is_nothing_to_do() -> None:
    assert inlined("import torch\n", MODULES) is None


def test_lines_that_a_traceback_names_are_found_again() -> None:
    script = "import torch\nfrom pkg.layers import Layer\n\ntorch.compile(Layer())(2)\n"
    text, lines = joined(script, [4], MODULES, {"pkg.layers": [7], "pkg.util": [4]})
    assert [text.split("\n")[line - 1].strip() for line in lines] == [
        "return torch.mul(x, by)", "return scaled(x, math.pi)", "torch.compile(Layer())(2)",
    ]  # fmt: skip


@pytest.mark.parametrize("modules", [{}, {"pkg.layers": "no python ("}])
def test_what_cannot_be_written_in_leaves_the_script(modules: dict[str, str]) -> None:
    script = "from pkg.layers import Layer  # mine\nLayer()\n"
    assert joined(script, [2], modules, {}) == (script, (2,))


def test_a_package_whose_own_file_imports_from_it() -> None:
    modules = {"pkg": "from .blocks import scaled\nFACTOR = 2\n", "pkg.blocks": "def scaled(x, by):\n    return x * by\n"}
    found = inlined("from pkg import FACTOR, scaled\nscaled(1, FACTOR)\n", modules)
    assert found == "def scaled(x, by):\n    return x * by\n\n\nFACTOR = 2\nscaled(1, FACTOR)\n"
