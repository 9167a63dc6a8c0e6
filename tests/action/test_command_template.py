"""Test commands as repositories write them, and that what is taken here is what the engine runs."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.command_template import CommandTemplate, TemplateError, parse
from bot.engine.target import CommandError, target_of_command

T = CommandTemplate


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("pytest {nodeid}", T(("pytest", "{nodeid}"))),
        ("pytest '{nodeid}'", T(("pytest", "{nodeid}"))),
        ("python3.12 -m pytest -x {nodeid}", T(("python3.12", "-m", "pytest", "-x", "{nodeid}"))),
        (".venv/bin/pytest {nodeid}", T((".venv/bin/pytest", "{nodeid}"))),
        ("python -X dev -u run.py --only={nodeid}", T(("python", "-X", "dev", "-u", "run.py", "--only={nodeid}"))),
        ("cd python && pytest {nodeid}", T(("pytest", "{nodeid}"), directory="python")),
        ("cd a/b && cd ../c && pytest {nodeid}", T(("pytest", "{nodeid}"), directory="a/c")),
        ("cd x && VAR=1 pytest {nodeid}", T(("pytest", "{nodeid}"), ("VAR=1",), "x")),
        ("export A=1 B='2 3' && pytest {nodeid}", T(("pytest", "{nodeid}"), ("A=1", "B=2 3"))),
        (
            "env PYTORCH_TEST_WITH_INDUCTOR=1 python test/run.py {nodeid}",
            T(("python", "test/run.py", "{nodeid}"), ("PYTORCH_TEST_WITH_INDUCTOR=1",)),
        ),
        ("uv run pytest {nodeid}", T(("pytest", "{nodeid}"), launcher=("uv", "run"))),
        (
            "uv run --extra dev --no-sync -- pytest {nodeid}",
            T(("pytest", "{nodeid}"), launcher=("uv", "run", "--extra", "dev", "--no-sync", "--")),
        ),
        ("poetry run python -m pytest {nodeid}", T(("python", "-m", "pytest", "{nodeid}"), launcher=("poetry", "run"))),
        ("tox -e py312 -- -x {nodeid}", T(("pytest", "-x", "{nodeid}"), launcher=("tox", "exec", "-e", "py312", "--"))),
        ("torchrun --nproc-per-node 2 run.py {nodeid}", T(("torchrun", "--nproc-per-node", "2", "run.py", "{nodeid}"))),
        ("accelerate launch run.py {nodeid}", T(("accelerate", "launch", "run.py", "{nodeid}"))),
        ("bash -c 'pytest {nodeid}'", T(("pytest", "{nodeid}"))),
        ("""bash -ec "cd x && A=b pytest '{nodeid}' -v" """, T(("pytest", "{nodeid}", "-v"), ("A=b",), "x")),
    ],
)
def test_as_repositories_write_them(text: str, template: CommandTemplate) -> None:
    assert parse(text) == template


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pytest", "must hold {nodeid} once"),
        ("pytest {nodeid} {nodeid}", "must hold {nodeid} once"),
        ("pytest {{nodeid}}", "must hold {nodeid} with one brace on each side"),
        ("pytest ${{ nodeid }}", "must hold {nodeid} once"),
        ("make test T={nodeid}", "is no Python program"),
        ("accelerate config {nodeid}", "is no Python program"),
        ("python -c 'print(1)' {nodeid}", "is no Python program"),
        ("pip install -e . && pytest {nodeid}", "put what prepares the checkout into the input `setup`"),
        ("cd /tmp && pytest {nodeid}", "outside of the checkout"),
        ("cd ~ && pytest {nodeid}", "outside of the checkout"),
        ("cd .. && pytest {nodeid}", "outside of the checkout"),
        ("pytest {nodeid} | tee log", "takes a shell"),
        ("pytest {nodeid} > log", "takes a shell"),
        ("pytest {nodeid}; true", "takes a shell"),
        ("pytest {nodeid} &", "takes a shell"),
        ("pytest $(cat list) {nodeid}", "takes a shell"),
        ("pytest $FLAGS {nodeid}", "takes a shell"),
        ("bash run.sh {nodeid}", "without -c"),
        ("pytest '{nodeid}", "not closed"),
        ("A={nodeid} pytest", "where no argument"),
        ("cd {nodeid} && pytest", "where no argument"),
        ("tox -e py {nodeid}", "behind `--`"),
        ("uv run", "must hold"),
        ("uv run --with {nodeid}", "names no program"),
    ],
)
def test_what_cannot_be_run_is_refused_with_words(text: str, words: str) -> None:
    with pytest.raises(TemplateError, match=words.replace("{", "\\{").replace("`", "`")):
        parse(text)


PARTS = "pytest python python3 -m -c -u -x -X dev -W {nodeid} t.py cd a && A=1 env uv run -- bash tox -e py - --x={nodeid} -q"
PARTS += " torchrun accelerate launch"
WORDS = st.sampled_from(PARTS.split())


@given(st.lists(WORDS, min_size=1, max_size=7), st.text(min_size=1, max_size=20))
def test_what_is_taken_here_is_run_by_the_engine_with_the_test_as_one_word(words: list[str], test: str) -> None:
    try:
        template = parse(" ".join(words))
    except TemplateError:
        return
    command = template.command(test)
    given_words = shlex.split(command)
    assert sum(word.endswith(test) for word in given_words) >= 1
    try:
        target_of_command(shlex.join(given_words[len(template.assignments) :]))
    except CommandError as error:  # pragma: no cover
        pytest.fail(f"{words}: {error}")


@given(st.text())
def test_any_text_is_a_template_or_refused(text: str) -> None:
    for each in (text, text + " {nodeid}", "bash -c '" + text + " pytest {nodeid}'"):
        try:
            parse(each)
        except TemplateError:
            continue


@given(st.text(min_size=1))
def test_an_id_stays_one_word_whatever_is_in_it(test: str) -> None:
    for text in ("pytest {nodeid}", "pytest '{nodeid}'", "bash -c 'pytest \"{nodeid}\"'", "A='x y' pytest --t={nodeid}"):
        words = shlex.split(parse(text).command(test))
        assert words[-1] in (test, f"--t={test}")


@pytest.mark.parametrize(
    ("test", "named"),
    [
        ("tests/test_a.py::TestA::test_b", "tests.test_a.TestA.test_b"),
        ("./test_a.py::TestA::test_b", "test_a.TestA.test_b"),
        ("tests/test_a.py", "tests/test_a.py"),
    ],
)
def test_unittest_is_given_its_own_names(test: str, named: str) -> None:
    assert parse("python -u -m unittest -v {nodeid}").command(test) == f"python -u -m unittest -v {named}"
    for text in ("python -m pytest {nodeid}", "python -m pytest -m unittest {nodeid}", ".venv/bin/pytest -m unittest {nodeid}"):
        assert parse(text).command(test).endswith(f" {test}")
