"""What keeps bot/ easy to find one's way in: small modules, few imports between packages, one meaning for each class name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "bot").rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
LINES = 400
PAIRS = 32
# A class, or another name for a type.
TYPE = re.compile(r"[A-Z]+[a-z]\w*")


def unit(path: Path) -> str:
    """The module or package right below bot/ to which a file belongs."""
    return path.relative_to(ROOT / "bot").parts[0].removesuffix(".py")


def imported_units(tree: ast.Module) -> set[str]:
    """Units that are imported absolutely, at the top or within a function."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("bot.")}
    return found


def test_the_modules_are_there() -> None:
    assert len(MODULES) > 100
    assert {"action", "engine", "inside", "models", "reduce"} <= {unit(path) for path in MODULES}


def test_no_module_is_large() -> None:
    sizes = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: size for name, size in sizes.items() if size > LINES} == {}


def test_few_units_import_each_other() -> None:
    units = {unit(path) for path in MODULES}
    pairs = {(unit(path), other) for path, tree in TREES.items() for other in imported_units(tree) if other in units} - {
        (one, one) for one in units
    }
    assert pairs
    assert len(pairs) <= PAIRS, sorted(pairs)


def test_no_name_of_a_type_means_two_things() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in TREES.items():
        where = str(path.relative_to(ROOT))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(where)
        for node in tree.body:
            aliases = [one.id for one in node.targets if isinstance(one, ast.Name)] if isinstance(node, ast.Assign) else []
            for name in filter(TYPE.fullmatch, aliases):
                places[name].append(where)
    assert {"Capture", "TakenAs"} <= places.keys()
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
