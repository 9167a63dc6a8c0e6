"""The program as one text."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.engine.capture.source import source_of
from bot.engine.capture.whole import whole
from bot.engine.target import Target

# a package as people write them: relative imports, a package's own file that imports from it, a launcher beside it
FILES = {
    "launch.py": "from shapes.export import main\n\nmain()\n",
    "shapes/__init__.py": "from .layers import Stack\n",
    "shapes/export.py": "from .layers import Stack\n\n\n"
    "def main():\n    print(Stack().run(2))\n\n\nif __name__ == '__main__':\n    main()\n",
    "shapes/layers.py": "from . import ops\nfrom .ops import Gate\n\n\n"
    "class Stack:\n    def run(self, x):\n        return ops.pack(Gate, x)\n",
    "shapes/ops.py": "class Gate:\n    scale = 3\n\n\ndef pack(gate, x):\n    return gate.scale * x\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize("module", [None, "shapes.export"])
def test_a_package_is_written_into_what_is_run(project: Path, module: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    source = source_of(Target(None if module else project / "launch.py", module, ()), project, places=(project,))
    assert source is not None
    said = f'Traceback (most recent call last):\n  File "{project}/shapes/ops.py", line 6, in pack\n    return\nKeyError: 1\n'
    found = whole(source, source.text, [said], (project,))
    assert set(found.modules) >= {"shapes.layers", "shapes.ops"}
    assert "import" not in found.text
    assert [found.text.split("\n")[line - 1].strip() for line in found.lines] == ["return gate.scale * x"]
    exec(compile(found.text, "whole.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == "6\n"


def test_a_script_that_imports_nothing_of_its_project_stays_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "fail.py"
    script.write_text("import torch  # here\n\n\n\nprint( torch )\n")
    source = source_of(Target(script, None, ()), tmp_path)
    assert source is not None
    assert whole(source, source.text, ()).text == script.read_text()
