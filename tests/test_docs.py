"""The docs name no file, module, function or heading that does not exist; comments and docstrings no module or page of ours."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))]
PATH = re.compile(r"(?<![\w./:@-])(?:bot|docs|scripts|tests|examples|tools|docker|\.github|\.ci)/[\w./*-]*[\w*/]")
# A path that leaves out where it begins, as in `inside/server.py`: nobody can open it.
SHORTENED = re.compile(r"[a-z_]\w*(?:/\w+)+\.py")
TO_FILL_IN = re.compile(r"/[A-Z_]{2,}(?:\.\w+)?$")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CALL = re.compile(r"(?:([A-Za-z_]\w*)\.)?([A-Za-z_]\w*)\(\)")
MEMBER = re.compile(r"([A-Za-z_]\w*)\.([A-Za-z_]\w*)")
DOTTED = re.compile(r"bot(?:\.\w+)+")
SUFFIXES = frozenset({"csv", "json", "jsonl", "log", "md", "pt2", "py", "txt", "yaml", "yml"})


@cache
def names(path: Path) -> dict[str, frozenset[str]]:
    """What a module defines: at its top under "", in each of its classes under the name of the class."""
    found: dict[str, set[str]] = defaultdict(set)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found[node.name] |= bound(node.body)
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            stored = [part for method in methods for part in ast.walk(method) if isinstance(part, ast.Attribute)]
            found[node.name] |= {part.attr for part in stored if isinstance(part.value, ast.Name) and part.value.id == "self"}
    found[""] |= bound(tree.body)
    return {name: frozenset(members) for name, members in found.items()}


def bound(body: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


MODULES = sorted((ROOT / "bot").rglob("*.py"))
SCRIPTS = [
    path
    for path in sorted((ROOT / "scripts").rglob("*"))
    if path.is_file() and (path.suffix == ".py" or re.match(rb"#!.*python", path.read_bytes()))
]


def defined(where: list[Path], owner: str | None, name: str) -> bool:
    """Whether one of the modules has a function of that name, in the class or module `owner` if one is given."""
    for path in where:
        if owner is None and any(name in members for members in names(path).values()):
            return True
        if owner is not None and (name in names(path).get(owner, ()) or (path.stem == owner and name in names(path)[""])):
            return True
    return False


def test_there_are_pages_and_modules() -> None:
    assert len(PAGES) > 10
    assert len(MODULES) > 100
    assert len(SCRIPTS) > 10


def wrong_paths(text: str) -> list[str]:
    found = []
    for match in PATH.finditer(text):
        # `FILE::TEST` is a test of some repository; in capitals stands what the reader fills in
        if text[match.end() :].startswith("::") or TO_FILL_IN.search(match[0]):
            continue
        if not any(ROOT.glob(match[0].rstrip("/"))):
            found.append(match[0])
    shortened = [
        span for span in SPAN.findall(text) if SHORTENED.fullmatch(span) and not PATH.fullmatch(span) and not TO_FILL_IN.search(span)
    ]
    return found + shortened


def wrong_modules(text: str) -> list[str]:
    found = []
    for name in DOTTED.findall(text):
        path = ROOT.joinpath(*name.split("."))
        if not path.is_dir() and not path.with_suffix(".py").exists():
            *parents, last = name.split(".")
            module = ROOT.joinpath(*parents).with_suffix(".py")
            if not (module.exists() and last in names(module)[""]):
                found.append(name)
    return found


def wrong_names(text: str) -> list[str]:
    """Functions in a module that their line names, else anywhere in bot/; members of classes and modules."""
    found = []
    owners = {path.stem for path in MODULES} | {owner for path in MODULES for owner in names(path)} - {""}
    for line in text.splitlines():
        where = [ROOT / path for path in PATH.findall(line) if path.endswith(".py") and (ROOT / path).is_file()]
        for span in SPAN.findall(line):
            if call := CALL.fullmatch(span):
                if call[1] != "torch" and not defined(where or MODULES, call[1], call[2]):
                    found.append(span)
            elif (member := MEMBER.fullmatch(span)) and member[1] in owners and member[2] not in SUFFIXES:
                found += [] if defined(MODULES, member[1], member[2]) else [span]
    return found


def headings(path: Path) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    found = re.findall(r"(?m)^#+ (.+)$", path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def wrong_links(page: Path, text: str) -> list[str]:
    found = []
    for target in LINK.findall(SPAN.sub("", text)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in headings(path)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"(?ms)^```.*?^```$", "", text)
    assert wrong_paths(text) == []
    assert wrong_modules(text) == []
    assert wrong_names(prose) == []
    assert wrong_links(page, prose) == []


def torn_rows(text: str) -> list[str]:
    """Rows of tables that have other cells than their heading: GitHub leaves out what is too much."""
    found: list[str] = []
    cells = 0
    for line in text.splitlines():
        bars = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        cells = (cells or bars) if bars else 0
        found += [line] if bars != cells else []
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_rows_of_a_table_are_as_wide_as_its_heading(page: Path) -> None:
    assert torn_rows(page.read_text(encoding="utf-8")) == []


def test_a_row_with_a_cell_too_many_is_seen() -> None:
    table = "| a | b |\n|---|---|\n| `x \\| y` | 1 |\n"
    assert torn_rows(table) == []
    assert torn_rows(f"{table}| x | 1 | 2 |\n\n| one |\n|---|\n") == ["| x | 1 | 2 |"]


def comments(text: str) -> str:
    """What a module says of itself: comments and docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(token.string for token in tokens if token.type == tokenize.COMMENT or token.string.startswith('"""'))


def wrong_in_comments(text: str) -> list[str]:
    """Paths of modules and pages of ours. Others are of other projects: examples, files of PyTorch's."""
    packages = {path.name for path in (ROOT / "bot").iterdir() if path.is_dir()}
    return [path for path in wrong_paths(comments(text)) if path.startswith(("bot/", "docs/")) or path.partition("/")[0] in packages]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_comment_names_exists(path: Path) -> None:
    assert wrong_in_comments(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_script_says_of_itself_exists(path: Path) -> None:
    assert wrong_paths(comments(path.read_text(encoding="utf-8"))) == []


def test_a_wrong_path_in_a_comment_is_seen() -> None:
    text = '"""See `inside/server.py` and `test/run_test.py`."""\nx = "bot/gone.py"  # docs/gone.md, docs/gpu.md, `bot/inside/server.py`\n'
    assert wrong_in_comments(text) == ["docs/gone.md", "inside/server.py"]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`bot/inside/server.py`, scripts/test and `docs/`", []),
        ("`bot/inside/gone.py`", ["bot/inside/gone.py"]),
        ("see scripts/gone.", ["scripts/gone"]),
        ("`inside/server.py`", ["inside/server.py"]),
        ("`docker/*.txt`, `pytest tests/test_model.py::test_x`, `bot/reduce/NAME.py`", []),
        ("`docs/*.rst`", ["docs/*.rst"]),
    ],
)
def test_a_wrong_path_is_seen(text: str, wrong: list[str]) -> None:
    assert wrong_paths(text) == wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`bot/inside/server.py` has `Server.watch()`, `main()`", []),
        ("`bot/inside/server.py` has `Server.gone()`", ["Server.gone()"]),
        ("`bot/inside/boot.py` has `watch()`", ["watch()"]),
        ("`bot/inside/boot.py`: see\n`watch()`", []),
        ("`gone_for_good()`", ["gone_for_good()"]),
        ("`Program.graph`, `sizes.run`, `result.json`, `torch.relu`", []),
        ("`Program.gone`, `sizes.gone`", ["Program.gone", "sizes.gone"]),
    ],
)
def test_a_wrong_name_is_seen(text: str, wrong: list[str]) -> None:
    assert wrong_names(text) == wrong


def test_a_wrong_module_or_link_is_seen() -> None:
    assert wrong_modules("`bot.inside.server`, bot.inside.server.Server, bot.inside.gone") == ["bot.inside.gone"]
    page = ROOT / "docs/architecture.md"
    text = "[a](gone.md) [b](capture.md) [c](capture.md#gone) [d](https://example.invalid) [e](../README.md#options)"
    assert wrong_links(page, text) == ["gone.md", "capture.md#gone"]
