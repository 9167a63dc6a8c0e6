"""Local modules written into the script that imports them."""

from __future__ import annotations

import pytest

from bot.reduce.source.modules import inlined, joined

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


def test_two_meanings_of_a_name_are_refused() -> None:
    assert inlined("from a import f\nfrom b import g\nf(g)\n", {"a": "def f(): pass\n", "b": "def f(): pass\ndef g(): f()\n"}) is None


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
