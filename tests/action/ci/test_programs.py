"""The commands by which programs were started."""

from __future__ import annotations

import time

import pytest

from bot.action.ci.failing_test import NO_HINT, Hint
from bot.action.ci.programs import Started, begun_in, failed_in, started_in


def command(*lines: str, path: str = "/w/bench/run.py") -> str:
    started = Started()
    for line in lines:
        started.see(line)
    hint = started.find(path)
    return " ".join([*hint.variables, hint.program])


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("+ python bench/run.py --compile", "python bench/run.py --compile"),
        ("++ python3.12 -u run.py", "python3.12 -u run.py"),
        ("$ NGPU=2 torchrun --nproc_per_node=2 run.py", "NGPU=2 torchrun --nproc_per_node=2 run.py"),
        ("##[group]Run accelerate launch --num_processes 2 run.py", "accelerate launch --num_processes 2 run.py"),
        ("+ uv run --frozen python run.py", "python run.py"),
        ("+ conda run -n env --no-capture-output python run.py", "python run.py"),
        ("+ NGPU=2 timeout -k 5 600s python run.py", "NGPU=2 python run.py"),
        ("+ env OMP_NUM_THREADS=1 LD_PRELOAD=x.so python run.py", "OMP_NUM_THREADS=1 python run.py"),
        ("+ /opt/venv/bin/python bench/run.py", "python bench/run.py"),
        ("+ python -m bench.run --compile", "python -m bench.run --compile"),
        ("+ python run.py --ids '{\"a\": [1, 2]}'", "python run.py --ids '{\"a\": [1, 2]}'"),
        ('+ python run.py --name "a b"', 'python run.py --name "a b"'),
        # as ninja shows it
        ("cd /w/build && python /w/bench/run.py --aot", "python /w/bench/run.py --aot"),
        # not these
        ("cd /w/bench && python run.py", ""),
        ("cd /w/bench && python -m run", ""),
        ("cd /w/build && python /w/bench/run.py && rm x", ""),
        ("cd build && python /w/bench/run.py", ""),
        ("python run.py", ""),
        ("+ python run.py | tee log", ""),
        ("+ python run.py $(id)", ""),
        ("+ python run.py \"it's $(id) isn't\"", ""),
        ("+ python run.py \\'$(id)\\'", ""),
        ("+ python run.py 'torn", ""),
        ("+ python run.py  # twice", ""),
        ("+ bash run.sh run.py", ""),
        ("+ python other.py", ""),
    ],
)
def test_one_line(line: str, program: str) -> None:
    assert command(line) == program


def test_the_lines_of_a_step() -> None:
    step = (
        "##[group]Run cd bench",
        "cd bench",
        "NGPU=2 python run.py --compile",
        "shell: /usr/bin/bash -e {0}",
        "python run.py --late",
        "##[endgroup]",
    )
    assert command(*step) == "NGPU=2 python run.py --compile"


STEP = ("##[group]Run python run.py --a", "python run.py --a", "python run.py --b", "shell: bash", "##[endgroup]")


@pytest.mark.parametrize(
    ("lines", "program"),
    [
        (STEP, ""),
        (("##[group]Run python run.py --a", "python run.py --a", "python run.py", "python run.py --a", "##[endgroup]"), ""),
        ((*STEP, "+ python run.py --a"), "python run.py --a"),
        ((*STEP, "##[group]Run python run.py --c", "python run.py --c", "##[endgroup]"), "python run.py --c"),
        # one after the other
        (("+ python run.py --a", "+ python run.py --b"), "python run.py --b"),
        # one that cannot be told
        (("$ python run.py --a", "$ python run.py --b | tee log"), ""),
        (("$ python run.py --a", "cd /w/x && python run.py --b"), ""),
        (("##[group]Run python run.py | tee log", "python run.py | tee log", "python run.py --b", "##[endgroup]"), ""),
    ],
)
def test_of_several_in_a_list_nobody_knows_which_failed(lines: tuple[str, ...], program: str) -> None:
    assert command(*lines) == program


@pytest.mark.parametrize(
    ("lines", "program"),
    [
        (("python run.py --a", "export A=1", "", "python run.py --b"), ""),
        (("python run.py --a", "made up", "python run.py --b"), "python run.py --b"),
        (("$ python run.py --a", "$ python run.py --b"), "python run.py --b"),
        (("python run.py --a", "python other.py"), "python run.py --a"),
    ],
)
def test_the_same_in_a_text(lines: tuple[str, ...], program: str) -> None:
    hint = started_in([*lines]).find("/w/run.py")
    assert " ".join([*hint.variables, hint.program]) == program


@pytest.mark.parametrize(
    "shown",
    [
        *("py311: commands[0]> ", "made-up: commands[12]> ", "py311 run-test: commands[0] | ", "nox > ", "Poe => ", "cmd [1] | "),
        *("+ ci/run.sh:12: ", "++ ci/run.sh:12:main ", "+(run.sh:7): ", "+ ./run.sh:7:main(): "),
    ],
)
def test_how_others_show_a_command(shown: str) -> None:
    assert (
        command(f"{shown}NGPU=2 python bench/run.py --a")
        == last(f"{shown}NGPU=2 python bench/run.py --a")
        == "NGPU=2 python bench/run.py --a"
    )
    assert last(f"{shown}python bench/run.py", f"{shown}made up") == ""


def test_a_command_of_tox_in_another_directory() -> None:
    assert command("py311: commands[0] /w/bench> python run.py") == ""


def test_a_package_is_run_by_its_main_file() -> None:
    assert command("+ python -m bench.tool", path="/w/bench/tool/__main__.py") == "python -m bench.tool"
    assert command("+ python -m bench.tool", path="C:\\w\\bench\\tool\\__main__.py") == "python -m bench.tool"


def last(*lines: str) -> str:
    started = Started()
    for line in lines:
        started.see(line)
    return " ".join([*started.last.variables, started.last.program])


@pytest.mark.parametrize(
    ("lines", "program"),
    [
        (("+ python a.py", "x", "+ NGPU=2 python b.py --c"), "NGPU=2 python b.py --c"),
        (("+ python -m a.main --b", "+ export C=1", "+ C=1", "+ '[' 0 -ne 0 ']'"), "python -m a.main --b"),
        # another program came after it, perhaps one that does not show what it starts
        (("+ python a.py", "+ vllm serve x"), ""),
        (("+ python a.py", "+ ./run.sh"), ""),
        (("+ python a.py | tee log",), ""),
        (("+ python a.py", "##[group]Run make"), ""),
        (("##[group]Run cd x", "cd x", "python a.py --b", "shell: bash", "##[endgroup]"), "python a.py --b"),
        (("##[group]Run python a.py", "python a.py", "shell: bash", "##[endgroup]"), "python a.py"),
        # which of them it was cannot be told
        (("##[group]Run python a.py", "python a.py", "python b.py", "shell: bash", "##[endgroup]"), ""),
        (("##[group]Run python a.py", "python a.py", "./run.sh", "shell: bash", "##[endgroup]"), ""),
        (("+ python a.py \\", "    --b 1 \\", "    --c", "x"), "python a.py --b 1 --c"),
        (("##[group]Run python a.py \\", "python a.py \\", "  --b", "shell: bash", "##[endgroup]"), "python a.py --b"),
        (("+ python a.py \\", "  --b | tee log"), ""),
        (("+ python a.py \\",), ""),
        ((), ""),
    ],
)
def test_the_last_program(lines: tuple[str, ...], program: str) -> None:
    assert last(*lines) == program


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("python ./run.py --a 1", "python ./run.py --a 1"),
        ("NGPU=2 torchrun --nproc_per_node=2 run.py", "NGPU=2 torchrun --nproc_per_node=2 run.py"),
        ("python run.py | tee log", ""),
        ("python is not run.py", ""),
        ("It runs python run.py", ""),
        ("python -m torch.made.up --node_id 0 run.py --a", "python -m torch.made.up --node_id 0 run.py --a"),
        ("python3 -m made_up.tool.run --a", "python3 -m made_up.tool.run --a"),
        ("python -m torch.utils.made_up", ""),
        ("python -m made_up run.py", ""),
        ("- To see it, run: `NGPU=2 python run.py --a`", "NGPU=2 python run.py --a"),
        ("`python run.py`.", "python run.py"),
        ("  ` python run.py `", "python run.py"),
        ("It runs `python run.py`", ""),
        ("`python run.py` or `python run.py --a`", ""),
        ("# python3 ./run.py --a", "python3 ./run.py --a"),
        (
            "torchrun --standalone --nproc-per-node 2 --role rank -m made_up.train --a",
            "torchrun --standalone --nproc-per-node 2 --role rank -m made_up.train --a",
        ),
        ("torchrun it runs run.py", ""),
        ("# python is not run.py", ""),
    ],
)
def test_a_command_in_a_text(line: str, program: str) -> None:
    started = Started(is_text=True)
    started.see(line)
    assert " ".join([*started.last.variables, started.last.program]) == program


def test_a_command_in_ticks_is_none_of_a_log() -> None:
    started = Started()
    started.see("`python run.py`")
    assert started.last == NO_HINT


@pytest.mark.parametrize(
    ("lines", "program"),
    [
        (("It fails:", "$ NGPU=2 python run.py --a", "made up"), "NGPU=2 python run.py --a"),
        (("python run.py --a", "$ ls", "python run.py --a"), "python run.py --a"),
        (("python run.py --a", "python run.py"), ""),
        (("python run.py --a", "python other.py"), ""),
        (("made up",), ""),
    ],
)
def test_the_only_command_of_a_text(lines: tuple[str, ...], program: str) -> None:
    hint = started_in([*lines]).only
    assert " ".join([*hint.variables, hint.program]) == program


@pytest.mark.parametrize(
    ("lines", "script"),
    [
        ((" NGPU=2 python a/run.py  --model $MODEL --b", "made up"), "a/run.py"),
        (("$ torchrun --nproc_per_node 2 run.py 2>&1 | tee log", "`python run.py`"), "run.py"),
        (("python run.py", "python other.py"), ""),
        (("python -m made_up.run",), ""),
        (("It runs python run.py",), ""),
    ],
)
def test_the_only_file_that_the_commands_of_a_text_run(lines: tuple[str, ...], script: str) -> None:
    assert started_in([*lines]).script == script


def test_nothing_was_started() -> None:
    assert Started().find("run.py") == NO_HINT


@pytest.mark.parametrize(
    "around",
    [
        *("with-proxy", "uv run", "nohup", "timeout 60", "conda run -n made_up", "taskset -c 0-3", "taskset 0x3", "nice", "nice -n 10"),
        *("numactl -C 0-3 -m 0", "numactl --cpunodebind=0 --membind 0", "nice -19", "nice -n -5", "ionice -c 3", "chrt --batch 0"),
        *("stdbuf -oL", "stdbuf -o 0 -e0", "time -p", "/usr/bin/time -v", "/usr/bin/time -f '%e s'", "env -u MADE_UP", "/usr/bin/env"),
        *("timeout 1.5h", "timeout --kill-after 5 60", "timeout --signal=KILL 60", "xvfb-run", "xvfb-run -a -s '-screen 0 1x1x24'"),
        *('xvfb-run --server-args="-screen 0 1x1x24"', "uv run --with made-up --no-sync", "uv run -p 3.12 --", "pixi run -e test"),
        *("pipenv run", "rye run", "sudo -E", "sudo -E -u user env PATH=/x", "setsid", "unbuffer", "catchsegv"),
        *("taskset -c 0-3 timeout 60 nice -n 5 env A=1",),
    ],
)
def test_what_stands_around_the_only_command_of_a_text(around: str) -> None:
    for line in (f"{around} NGPU=2 python a/run.py --b 1", f"NGPU=2 {around} python a/run.py --b 1"):
        assert started_in([line]).only == Hint(("NGPU=2",), "python a/run.py --b 1")
    assert started_in([f"It is {around} python a/run.py"]).only == Hint()


@pytest.mark.parametrize(
    "around",
    [
        # in another directory, or of a line of its own
        *("uv run --directory made_up", "uv run --directory=made_up", "conda run --cwd /x", "env -C /x", "env -S", "sudo -D /x"),
        # in as many processes as it says, or in another machine
        *("srun", "srun -n 2", "mpirun -n 2", "docker exec made_up", "ssh made_up"),
        # with something that watches it
        *("coverage run", "nsys profile", "compute-sanitizer"),
        *("taskset", "timeout", "nice -n", "made_up"),
    ],
)
def test_what_changes_a_command_is_not_left_out(around: str) -> None:
    assert last(f"+ {around} python a/run.py") == ""


@pytest.mark.parametrize(
    "word", ["nice -n ", "timeout -k -k -k ", "numactl -C -C -m ", "uv run -p -p ", "taskset -c 0 ", "/usr/bin/time -f -o "]
)
def test_what_stands_around_nothing_is_read_at_once(word: str) -> None:
    began = time.process_time()
    assert last("+ " + word * 2_000) == ""
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("frames", "path"),
    [
        (("/w/torch/distributed/elastic/multiprocessing/errors/__init__.py wrapper", "/w/made_up/train.py train"), "/w/made_up/train.py"),
        (("/w/torch/multiprocessing/spawn.py _wrap", "/w/made_up/train.py train"), "/w/made_up/train.py"),
        (("/w/torch/distributed/elastic/multiprocessing/errors/__init__.py main", "/w/made_up/train.py train"), ""),
        (("/w/made_up/train.py <module>", "/w/made_up/model.py forward"), "/w/made_up/train.py"),
        (("/w/made_up/train.py train", "/w/made_up/model.py forward"), ""),
    ],
)
def test_the_program_with_which_a_traceback_begins(frames: tuple[str, ...], path: str) -> None:
    shown = [(file, function) for file, _, function in (frame.partition(" ") for frame in frames)]
    text = "".join(f'  File "{file}", line 3, in {function}\n    return f(*args, **kwargs)\n           ^^^^\n' for file, function in shown)
    assert begun_in(f"Traceback (most recent call last):\n{text}RuntimeError: made up") == path


RAISED = "subprocess.CalledProcessError: Command {} returned non-zero exit status 1."


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("'['python', 'run.py', '--a', 'b c']'", "python run.py --a 'b c'"),
        ("'['/opt/bin/python3.11', '-u', '/w/bench/run.py']'", "python3.11 -u /w/bench/run.py"),
        (r"'['C:\\venv\\python.exe', 'C:/w/run.py']'", "python C:/w/run.py"),
        ("'['python', '-m', 'bench.run', '$(id)']'", "python -m bench.run '$(id)'"),
        ("'python run.py --a'", "python run.py --a"),
        # not these
        ("'['bash', 'run.sh', 'run.py']'", ""),
        ("'python run.py --a | tee log'", ""),
        ("'['python', 'run.py', 3]'", ""),
        ("'['python', 'run.py\\n']'", ""),
        ("'['python', 'other.py']'", ""),
        ("'['python', 'run.py'", ""),
        ("'[]'", ""),
        ("'[[[[[[[[[[]'", ""),
    ],
)
def test_a_command_of_which_its_parent_says_that_it_failed(command: str, program: str) -> None:
    assert failed_in(["made up", RAISED.format(command)]).get("run.py", NO_HINT) == Hint((), program)


def test_of_several_commands_that_failed_for_one_file_none_is_named() -> None:
    raised = [RAISED.format(f"'['python', 'run.py', '--{option}']'") for option in ("a", "b", "a")]
    assert failed_in(raised[:1] * 2)["run.py"] == Hint((), "python run.py --a")
    assert failed_in(raised)["run.py"] == NO_HINT
    assert failed_in(["RuntimeError: made up", f"E   {raised[0]}", "subprocess.CalledProcessError: made up"]) == {}
