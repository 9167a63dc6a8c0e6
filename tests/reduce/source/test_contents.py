"""What a script reads, written into it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bot.reduce.source.contents import with_content

CONTENT = 'width = 3\n"quoted"\n'


@pytest.mark.parametrize(
    "line",
    [
        "text = open('a.txt').read()",
        "text = open(file='a.txt', mode='r').read()",
        "text = open('a.txt', 'rb').read().decode()",
        "text = Path('a.txt').read_text(encoding='utf-8')",
        "text = Path('a.txt').read_bytes().decode()",
        "text = Path('a.txt').open().read()",
        "text = ''.join(list(open('a.txt')))",
        "with open('a.txt') as file: text = file.read()",
        "text = read('a.txt')",
        "text = read(source='a.txt')",
    ],
)
def test_a_read_becomes_what_is_read(line: str, tmp_path: Path) -> None:
    script = f"""from __future__ import annotations
from pathlib import Path

def read(source):
    return source.read() if hasattr(source, "read") else open(source).read()

{line}
print(text, end="")
"""
    texts = list(with_content(script, 7, CONTENT))
    assert texts
    ended = [subprocess.run([sys.executable, "-c", one], cwd=tmp_path, capture_output=True, text=True, check=False) for one in texts]
    assert CONTENT in [one.stdout for one in ended]


def test_only_the_line_changes_and_what_it_needs_is_imported() -> None:
    script = "'''About.'''\nfrom __future__ import annotations\nx = open('a').read()\ny = open('b').read()\n"
    first = next(with_content(script, 4, "1"))
    assert first == "'''About.'''\nfrom __future__ import annotations\nimport io\nx = open('a').read()\ny = io.StringIO('1').read()\n"


def test_two_reads_need_one_import() -> None:
    once = next(with_content("x = open('a').read()\ny = open('b').read()\n", 1, "1"))
    assert next(with_content(once, 3, "2")) == "import io\nx = io.StringIO('1').read()\ny = io.StringIO('2').read()\n"


@pytest.mark.parametrize(("script", "line"), [("no Python (", 1), ("x = 1\n", 1), ("open('a')\n", 2)])
def test_where_nothing_reads_nothing_changes(script: str, line: int) -> None:
    assert list(with_content(script, line, "1")) == []
