"""What a program takes from its command line: the defaults that are written out."""

from __future__ import annotations

import pytest

from bot.reduce.source.passes.command_line import options
from bot.reduce.source.text.normal_form import MARK

PROGRAM = "p = argparse.ArgumentParser()\n{}\na = p.parse_args()\n{}\n"


@pytest.mark.parametrize(
    ("argument", "read", "written"),
    [
        ("'--width', type=int, default=8", "f(a.width)", "f(8)"),
        ("'-n', '--num-rows', default=8", "f(a.num_rows)", "f(8)"),
        ("'-n', default=8", "f(a.n)", "f(8)"),
        ("'--lambda', dest='lam', type=float, default=0.5", "f(a.lam * 2)", "f(0.5 * 2)"),
        ("'--low', type=float, default=-1.0", "f(a.low ** 2)", "f((-1.0) ** 2)"),
        ("'--fast', action='store_true'", "f(a.fast)", "f(False)"),
        ("'--slow', action='store_false'", "f(a.slow)", "f(True)"),
        ("'--compile', action=argparse.BooleanOptionalAction, default=True", "f(a.compile)", "f(True)"),
        ("'--name'", "f(a.name)", "f(None)"),
        ("'--name', choices=['x', 'y'], default='x'", "f(a.name)", "f('x')"),
    ],
)
def test_the_default_of_an_option(argument: str, read: str, written: str) -> None:
    added = f"p.add_argument({argument})"
    assert list(options(PROGRAM.format(added, read))) == [PROGRAM.format(added, written)]
    direct = f"p = argparse.ArgumentParser()\n{added}\n"
    (found,) = options(direct + read.replace("a.", "p.parse_args().") + "\n")
    assert found == direct + written + "\n"


@pytest.mark.parametrize(
    ("argument", "read"),
    [
        ("'width', default=8", "f(a.width)"),  # no option
        ("'--size', type=int, default='8'", "f(a.size)"),  # argparse makes a number of it
        ("'--where', default=os.getcwd()", "f(a.where)"),
        ("'--width', default=8", "f(b.width)"),  # another object's
        ("'--width', default=8", "a.width = 3"),
    ],
)
def test_what_is_not_known_stays(argument: str, read: str) -> None:
    assert list(options(PROGRAM.format(f"p.add_argument({argument})", read))) == []


def test_all_options_and_then_each_alone() -> None:
    added = "p.add_argument('--m', default=1)\np.add_argument('--n', default=2)"
    read = f"f(a.m, a.n){MARK}"
    assert [text.split("\n")[-2] for text in options(PROGRAM.format(added, read))] == [
        f"f(1, 2){MARK}",
        f"f(1, a.n){MARK}",
        f"f(a.m, 2){MARK}",
    ]
