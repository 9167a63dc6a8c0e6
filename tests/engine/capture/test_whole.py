"""The program as one text."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.engine.capture.region import Capture
from bot.engine.capture.source import source_of
from bot.engine.capture.whole import Carried, carried, whole
from bot.engine.target import Target
from bot.failure.outcome import Outcome

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


LOW = "import torch\n\n\ndef low(x):\n    return x\n\n\ndef unused(x):\n    return x\n\n\ntorch.table[1] = low\n"
MAIN = "import torch\nimport helpers\n\n\ndef own(x):\n    return x\n\n\ntorch.compile(own)(1)\n"


@pytest.mark.parametrize(("beside", "installed"), [((), (5,)), (("low",), (5,)), (("low",), ())])
def test_what_goes_with_a_graph(tmp_path: Path, beside: tuple[str, ...], installed: tuple[int, ...]) -> None:
    (tmp_path / "helpers.py").write_text(LOW)
    (tmp_path / "main.py").write_text(MAIN)
    source = source_of(Target(tmp_path / "main.py", None, ()), tmp_path)
    assert source is not None
    outcome = Outcome(status="ok", exit=0, text="")
    capture = Capture(outcome=outcome, signature=None, regions=(), versions={}, log=tmp_path, installed=installed, beside=beside)
    found = carried(source, capture, (tmp_path,))
    assert found.installed == (*(("own",) if installed else ()), *beside)
    if not beside:
        assert found == Carried(MAIN, None, ("own",))
    else:
        assert found.text is not None
        assert "import helpers" not in found.text
        assert "torch.table[1] = low" in found.text
