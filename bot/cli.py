"""The command line: arguments in, exit status out."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bot import __version__
from bot.engine.inputs.taken import ACCEPTED
from bot.engine.workspace import FULL
from bot.models.failure import Stage
from bot.models.result import EXIT_STATUS, UNUSABLE, InputTaken, TakenAs
from bot.units import cuda_arch, duration, or_auto, positive, versions

if TYPE_CHECKING:
    from bot.action.__main__ import Edge


# The commands that run repros alone.
_ALONE = {
    "verify": "run a repro on its own and compare it with a result",
    "recheck": "say whether the failure of a repro persists, is fixed or has changed with another torch",
    "range": "find at which of several torch versions the failure of a repro began, or ended",
    "suite": "recheck a directory of repros that must fail",
}


def parser() -> argparse.ArgumentParser:
    """The whole grammar of the command line."""
    top = argparse.ArgumentParser(
        prog="torch-minify", description="Turn a failing PyTorch compiler program into a small script that provably fails the same way."
    )
    top.add_argument("--version", action="version", version=f"torch-minify {__version__}")
    commands = top.add_subparsers(dest="command_name", required=True, metavar="COMMAND")
    _add_run(commands)

    minify = commands.add_parser("minify", help="minimize one request that gate wrote", allow_abbrev=False)
    minify.add_argument("--request", type=Path, required=True, metavar="FILE", help="the file that gate wrote")
    minify.add_argument("--index", type=int, required=True, metavar="N", help="which request in that file, counted from 0")
    minify.add_argument("--out", type=Path, required=True, metavar="DIR", help="the result directory")

    for name, what in _ALONE.items():
        alone = commands.add_parser(name, help=what, allow_abbrev=False)
        if name == "suite":
            alone.add_argument("directory", type=Path, metavar="DIR", help="a directory of repros, each with its result.json next to it")
        else:
            alone.add_argument("repro", type=Path, help="the repro, unchanged")
            alone.add_argument(
                "--result", type=Path, required=name != "range", metavar="FILE",
                help="the result.json that came with it" + (" (default: the one next to it)" if name == "range" else ""),
            )  # fmt: skip
        if name == "range":
            alone.add_argument(
                "--versions", type=versions, required=True, metavar="A,B,C", help="oldest first; pip installs missing versions"
            )
        else:
            alone.add_argument(
                "--python", default=sys.executable, metavar="PATH", help="the interpreter with your torch (default: this one)"
            )
        alone.add_argument("--runs", type=positive, default=3, metavar="N", help="fresh processes in which to run it (default 3)")
        alone.add_argument("--network", choices=["off", "on"], default="off", help="whether a repro may use the network (default off)")

    for name, what in (("gate", "turn a GitHub event into requests"), ("stop", "cancel the runs that a /minify stop refers to")):
        flow = commands.add_parser(name, help=what, allow_abbrev=False)
        flow.add_argument(
            "--event", type=Path, required=True, metavar="FILE", help="the event's payload: the file that GITHUB_EVENT_PATH names"
        )
        flow.add_argument("--event-name", required=True, metavar="NAME", help="issue_comment or workflow_run")
        if name == "gate":
            flow.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write the requests, as a JSON list")

    report = commands.add_parser("report", help="post the results of the requests that gate wrote", allow_abbrev=False)
    report.add_argument(
        "--result", type=Path, action="append", required=True, metavar="DIR", help="a result directory, or a directory of them"
    )
    report.add_argument("--request", type=Path, required=True, metavar="FILE", help="the file that gate wrote")
    report.add_argument("--dry-run", action="store_true", help="print the comments instead of posting them")

    candidates = commands.add_parser("candidates", help="list the failures in a CI log, one line of JSON each", allow_abbrev=False)
    candidates.add_argument("--log", type=Path, required=True, metavar="FILE", help="the log of a job, from any CI system; may be gzipped")
    commands.add_parser("snippet", help="print save_repro.py, which saves a failing graph from inside a program", allow_abbrev=False)

    doctor = commands.add_parser("doctor", help="say what this machine can do", allow_abbrev=False)
    doctor.add_argument("--python", default=sys.executable, metavar="PATH", help="the interpreter with your torch (default: this one)")
    doctor.add_argument("--github", action="store_true", help="check the setup of the repository that GITHUB_REPOSITORY names instead")
    return top


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run",
        help="minimize a failing script or test, or what PyTorch dumped for one",
        allow_abbrev=False,
        epilog=ACCEPTED,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("script", nargs="?", type=Path, metavar="X", help="the failing program: see below; arguments for a script go after --")
    run.add_argument("--graph", default=None, metavar="ID", help="compile id of the graph to take, if X holds several")
    run.add_argument("--inputs", type=Path, default=None, metavar="FILE", help="inputs for an exported program, saved with torch.save")
    run.add_argument(
        "--command",
        help="instead of X: '[NAME=value] pytest FILE::TEST', 'python SCRIPT ...', 'python -m MODULE ...', 'torchrun ...' or"
        " 'accelerate launch ...'",
    )
    run.add_argument("--stage", choices=["auto", *(s.value for s in Stage)], default="auto", help="the form to minimize in (default auto)")
    run.add_argument(
        "--accuracy", choices=["off", "auto", "on", "strict"], default="auto", help="whether to look for wrong numbers (default auto)"
    )
    run.add_argument("--device", choices=["cpu", "cuda"], default=None, help="refuse to run without this device")
    run.add_argument("--python", default=sys.executable, metavar="PATH", help="the interpreter with your torch (default: this one)")
    run.add_argument("--out", type=Path, default=Path("minified"), metavar="DIR", help="the result directory (default ./minified)")
    run.add_argument("--budget", type=duration, default=1800.0, metavar="TIME", help="total time (default 30m)")
    run.add_argument(
        "--hang-after", type=or_auto(duration), default=None, metavar="TIME",
        help="a run that takes longer counts as a hang (default auto: one that does not end within a third of the budget)",
    )  # fmt: skip
    run.add_argument(
        "--verify-runs", type=positive, default=3, metavar="N", help="fresh processes in which the repro must fail (default 3)"
    )
    run.add_argument(
        "--jobs", type=or_auto(positive), default=1, metavar="N",
        help="candidates to try at once (default 1), or auto: as many as this machine has room for",
    )  # fmt: skip
    run.add_argument("--seed", type=int, default=0, metavar="N", help="seed for the repro's random inputs (default 0)")
    run.add_argument("--resume", action="store_true", help="continue from what --out holds")
    run.add_argument(
        "--also-python",
        action="append",
        default=[],
        metavar="PATH",
        help="also run the repro in this interpreter, and report what happens (repeatable)",
    )
    run.add_argument("--network", choices=["off", "on"], default="off", help="whether the program may use the network (default off)")
    run.add_argument("--require-sandbox", action="store_true", help="refuse to run the program if a layer of the sandbox is missing")
    run.add_argument(
        "--read", type=Path, action="append", default=[], metavar="PATH", help="a file or directory that the program reads (repeatable)"
    )
    run.add_argument(
        "--cuda-arch",
        type=cuda_arch,
        metavar="N",
        help="compile for a GPU of this compute capability (90 for 9.0) that is not there; nothing is run, so only compile errors show",
    )


def main(argv: Sequence[str] | None = None, edge: Edge | None = None) -> int:
    """Run the command in `argv` (default: this process's arguments) and return its exit status.

    `edge` is how the commands for GitHub reach it; the default is the real one.
    """
    try:
        return _done(list(sys.argv[1:] if argv is None else argv), edge)
    except KeyboardInterrupt:  # a job has its own answer to it
        sys.stderr.write("torch-minify: interrupted\n")
        return EXIT_STATUS["error"]


def _done(given: list[str], edge: Edge | None) -> int:
    own, rest = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    grammar = parser()
    arguments = grammar.parse_args(own)
    if arguments.command_name == "run":
        if (arguments.script is None) == (arguments.command is None):
            grammar.error("run takes either X or --command")
        if arguments.command is not None and rest:
            grammar.error("arguments after -- belong to a SCRIPT; with --command write them into the command")
        try:
            with (
                _whoever_reads(),
                tempfile.TemporaryDirectory(prefix="torch-minify-input-", ignore_cleanup_errors=True) as scratch,
            ):
                os.chmod(scratch, 0o755)  # a program under another account reads its script there
                return _run(grammar, arguments, rest, Path(scratch))
        except OSError as error:
            if error.errno not in FULL:
                raise
            sys.stderr.write(f"torch-minify: {error}\n")
            return EXIT_STATUS["error"]
    if rest:
        grammar.error("only run takes arguments after --")
    if arguments.command_name == "snippet":
        sys.stdout.write((Path(__file__).parent / "inside" / "save_repro.py").read_text(encoding="utf-8"))
        return 0
    if arguments.command_name in _ALONE:
        return _alone(arguments)
    if arguments.command_name == "candidates":
        from bot.action.ci import candidates

        return candidates.main(arguments.log, Path.cwd())
    if arguments.command_name in ("gate", "stop", "report", "minify"):
        return _github(arguments, edge)
    if arguments.github:
        return _github(arguments, edge)
    from bot.engine import doctor_command

    return doctor_command.main(arguments.python)


class _UntilUnread:
    """The `stream`, except that what can no longer be written is lost."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _whoever_reads() -> Iterator[None]:
    """Let the job go on if nobody reads its output (`| head`), or if the file for that is full; its exit status is that of its result."""
    usual = sys.stdout, sys.stderr
    # None if it was closed from the beginning
    sys.stdout, sys.stderr = (stream and _UntilUnread(stream) for stream in usual)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = usual
        for stream in filter(None, usual):
            try:
                stream.flush()
            except OSError:  # Python flushes again at exit, and would exit with 120
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _alone(arguments: argparse.Namespace) -> int:
    """Run one repro alone, or several, as the command says."""
    from bot.engine.evidence import recheck, verify_command, version_range

    network = arguments.network == "on"
    if arguments.command_name == "suite":
        return recheck.suite(arguments.directory, arguments.python, arguments.runs, network=network)
    result = arguments.result or arguments.repro.with_name("result.json")
    if arguments.command_name == "range":
        return version_range.main(arguments.repro, result, arguments.versions, arguments.runs, network=network)
    one = verify_command.main if arguments.command_name == "verify" else recheck.recheck
    return one(arguments.repro, result, arguments.python, arguments.runs, network=network)


def _taken(grammar: argparse.ArgumentParser, arguments: argparse.Namespace, rest: Sequence[str], scratch: Path) -> dict[str, Any]:
    """What to run, and what the input was taken for, as fields of `Options`."""
    from bot.engine.inputs import prepare, taken
    from bot.engine.target import CommandError, Target, target_of_command
    from bot.engine.terminal import remarks

    if arguments.command is not None:
        try:
            target = target_of_command(arguments.command)
        except CommandError as error:
            grammar.error(str(error))
        if target.script is not None:
            _refuse_unreadable(grammar, target.script, os.path.isfile)
        _refuse_what_says_nothing(grammar, arguments, "command")
        return {"target": target if target.script is None else replace(target, script=target.script.resolve())}
    path: Path = arguments.script
    _refuse_unreadable(grammar, path, os.path.exists)
    if arguments.inputs is not None:
        _refuse_unreadable(grammar, arguments.inputs, os.path.isfile)
    try:
        target, found = prepare.prepared(path, tuple(rest), arguments.python, scratch, arguments.graph, arguments.inputs)
    except taken.NotUnderstood as error:
        sys.stderr.write(f"{remarks([f'{path} looks like {error}'])}\n{taken.ACCEPTED}")
        if not os.path.isfile(path):  # nothing that a result could be about; reading a pipe would wait for its writer
            raise SystemExit(UNUSABLE) from None
        why = _storable(f"{path.name} looks like {error}")
        return {"target": Target(path.resolve(), None, ()), "taken": InputTaken(taken_as="script", detail=why), "unusable": why}
    _refuse_what_says_nothing(grammar, arguments, found.taken_as)
    if found.text is None:
        return {"target": target}
    if found.taken_as == "notebook":
        prepare.look_beside(path)
    sys.stderr.write(remarks([f"took {path} for {found.detail}", *found.notes]))
    told = InputTaken(taken_as=found.taken_as, detail=_storable("; ".join((found.detail, *found.notes))))
    # a notebook imports what is next to it
    beside = [path.resolve().parent] if found.taken_as == "notebook" else []
    return {
        "target": target,
        "taken": told,
        "read": (*found.read, *beside),
        "wrong_numbers": found.wrong_numbers,
        "then": found.then,
        "otherwise": found.otherwise,
    }


def _refuse_unreadable(grammar: argparse.ArgumentParser, path: Path, is_there: Callable[[Path], bool]) -> None:
    if not is_there(path):
        grammar.error(f"there is no file {path}")
    if not path.is_file():
        return  # opening a pipe would wait for its writer
    try:
        path.open("rb").close()
    except OSError as error:
        grammar.error(f"{path} cannot be read: {error.strerror}")


def _refuse_what_says_nothing(grammar: argparse.ArgumentParser, arguments: argparse.Namespace, taken_as: TakenAs) -> None:
    """Refuse an option that says nothing about an input of this sort, instead of leaving it out silently."""
    what = taken_as.replace("_", " ")
    if arguments.graph is not None and taken_as in ("script", "command", "notebook"):
        grammar.error(f"--graph is for an X that holds graphs, and this is a {what}")
    if arguments.inputs is not None and taken_as not in ("exported_program", "package"):
        grammar.error(f"--inputs is for an exported program, and this is a {what}")


def _storable(text: str) -> str:
    """`text` as a file can hold it: file names need not be UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _run(grammar: argparse.ArgumentParser, arguments: argparse.Namespace, rest: Sequence[str], scratch: Path) -> int:
    from bot.engine.job import Job
    from bot.engine.options import Options

    for path in arguments.read:
        _refuse_unreadable(grammar, path, os.path.exists)
    given = _taken(grammar, arguments, rest, scratch)
    given["target"].hand_over_variables()
    read = (*(path.resolve() for path in arguments.read), *given.pop("read", ()))
    if arguments.cuda_arch is not None and arguments.device == "cpu":
        grammar.error("--cuda-arch compiles for CUDA: leave --device cpu out")
    if arguments.cuda_arch is not None and arguments.accuracy in ("on", "strict"):
        grammar.error("with --cuda-arch nothing is run, so there are no numbers to compare: leave --accuracy out")
    if arguments.cuda_arch is not None and arguments.also_python:
        grammar.error("--also-python runs the repro in another interpreter; with --cuda-arch nothing is run")
    options = Options(
        **given,
        python=arguments.python,
        out=arguments.out,
        stage=None if arguments.stage == "auto" else Stage(arguments.stage),
        accuracy=arguments.accuracy if arguments.cuda_arch is None else "off",
        device=arguments.device,
        cuda_arch=arguments.cuda_arch,
        budget=arguments.budget,
        hang_after=arguments.hang_after,
        verify_runs=arguments.verify_runs,
        jobs=arguments.jobs,
        seed=arguments.seed,
        resume=arguments.resume,
        also_python=tuple(arguments.also_python),
        network=arguments.network == "on",
        require_sandbox=arguments.require_sandbox,
        read=read,
    )
    result = Job(options).run()
    return UNUSABLE if result is None else result.exit_status


def _github(arguments: argparse.Namespace, edge: Edge | None) -> int:
    # imported here, since the packages that it needs are an extra
    try:
        from bot.action import __main__ as action
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] == "bot":
            raise
        name = "doctor --github" if arguments.command_name == "doctor" else arguments.command_name
        sys.stderr.write(f"torch-minify: {name} needs {error.name}: install torch-minify with its extra `action`\n")
        return UNUSABLE

    edge = edge or action.EDGE
    if arguments.command_name == "doctor":
        return action.run_set_up(edge)
    if arguments.command_name == "report":
        return action.run_report(arguments.result, arguments.request, dry_run=arguments.dry_run, edge=edge)
    if arguments.command_name == "minify":
        return action.run_minify(arguments.request, arguments.index, arguments.out, edge)
    return action.run_gate(arguments.event, arguments.event_name, arguments.out if arguments.command_name == "gate" else None, edge)
