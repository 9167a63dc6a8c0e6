"""Variables of the caller's environment, written into a script."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bot.reduce.source.environ import Rank, with_surroundings

ADDED = 'import os\nos.environ["A"] = "1"\n'


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("", "import torch\nf()\n"),
        ("", "# a comment\nimport torch\n"),
        ('"""What it is."""\n', "\nimport torch\n"),
        ('"""What\nit is."""\nfrom __future__ import annotations\n', "import torch\n"),
        ("from __future__ import (\n    annotations,\n)\n", ""),
        ("", ""),
    ],
)
def test_at_the_top(before: str, behind: str) -> None:
    text, _ = with_surroundings(before + behind, (), {"A": "1"})
    assert text == before + ADDED + behind
    compile(text, "<text>", "exec")


def test_lines_move_along() -> None:
    text, lines = with_surroundings('"""What it is."""\nimport torch\nf()\n', (1, 3), {"A": "1", "B": "it's"})
    assert [text.split("\n")[line - 1] for line in lines] == ['"""What it is."""', "f()"]
    assert 'os.environ["B"] = "it\'s"' in text


@pytest.mark.parametrize(("text", "variables"), [("f()\n", {}), ("f(\n", {"A": "1"})])
def test_as_it_is(text: str, variables: dict[str, str]) -> None:
    assert with_surroundings(text, (1,), variables) == (text, (1,))


def test_arguments_are_written_too() -> None:
    text, lines = with_surroundings("import sys\nf(sys.argv)\n", (2,), {"A": "1"}, ("--width", "it's"))
    assert text.split("\n")[:4] == ["import os", 'os.environ["A"] = "1"', "import sys", 'sys.argv[1:] = ["--width", "it\'s"]']
    assert [text.split("\n")[line - 1] for line in lines] == ["f(sys.argv)"]


RANKED = """\
import os
import torch.distributed as dist
dist.init_process_group("gloo", world_size=7)
found = (dist.get_backend(), dist.get_rank(), dist.get_world_size(), os.environ["LOCAL_RANK"])
dist.destroy_process_group()
"""


def test_one_rank_of_several_needs_no_other() -> None:
    text, lines = with_surroundings(RANKED, (4,), {}, (), Rank(1, 3))
    assert text.split("\n")[lines[0] - 1].startswith("found")
    program = f"{text}print(found)\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "('fake', 1, 3, '1')\n"


TALKING = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
t = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(t)
raise SystemExit(f"rank {dist.get_rank()} has {t.item()}")
"""


@pytest.mark.parametrize(
    ("rank", "said"), [(Rank(0, 2), "rank 0 has 1"), (Rank(0, 2, alone=False), "rank 0 has 3"), (Rank(1, 2, alone=False), "rank 1 has 3")]
)
def test_two_ranks_that_talk_to_each_other(rank: Rank, said: str) -> None:
    """The one that counts is the process itself; the other one says nothing."""
    text, _ = with_surroundings(TALKING, (), {}, (), rank)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr.strip().split("\n")[-1]) == (1, said)


def test_the_forms_of_a_rank() -> None:
    assert list(Rank(3, 8).forms()) == [Rank(3, 8), Rank(1, 2, alone=False)]
    assert list(Rank(0, 1).forms()) == [Rank(0, 1)]
