"""Rerunning the user's program with the hooks of `bot.inside` in place."""

from __future__ import annotations

import builtins
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from bot.engine.capture import children
from bot.engine.capture.left import read_facts
from bot.engine.capture.region import Capture, Region, read_regions
from bot.engine.target import Target
from bot.failure.outcome import Outcome
from bot.failure.signature import is_of_own_code, is_own_verdict, signature_of
from bot.failure.traceback import last_path
from bot.inside.protocol import COMPARED_DIR, ESCAPED_FILE, ORDER_FILE, RUN_FILE, CaptureOrder, EscapedFile, RunFacts, command, encode
from bot.models.failure import Kind, Phase, Signature
from bot.oracle.budget import Budget
from bot.sandbox.sandbox import Sandbox
from bot.workers import environment, toolchain
from bot.workers.process import Patience, run_process

PROBE_SHARE = 0.1  # share of a run's time that it may wait for what every C++ compile begins with
MOST_WORDS = 60  # characters of a message that identify it
STACKS = 7  # sampled of a program that does not end
_WORD = re.compile(r"\w+")
_COMPARING = ("bot/inside/eager/accuracy.py", "bot/inside/eager/noise.py")


@dataclass(frozen=True)
class Tolerance:
    """How numbers are compared: `values` are rtol and atol (None for the usual ones); `strict` counts integers and booleans as well."""

    values: tuple[float, ...] | None = None
    strict: bool = False


@dataclass(frozen=True)
class Watch:
    """What one capture looks for, and where it writes.

    `out` is an empty directory, with the log next to it; `cache` is the compile directory. With `compare`, every compiled region is
    compared with eager and float64. `beforehand` writes each graph before it is compiled, for a program that dies in the compiler.
    `synchronous` runs GPU kernels one after the other, so that the one that was called is the one that fails, and writes each graph before
    its first call. `afterwards` compares after the program has ended, if possible. With `as_eager`, as with `compare`, compiled code draws
    the random numbers that eager draws. `later_calls` also compares later calls of a region. With `fall_back`, what the compiler rejects
    runs in eager. The program runs in the sandbox `box`, if any, and waits a while for what is `made`.
    """

    out: Path
    cache: Path
    compare: Tolerance | None = None
    beforehand: bool = False
    synchronous: bool = False
    box: Sandbox | None = None
    made: toolchain.Maker | None = None
    afterwards: bool = False
    as_eager: bool = False
    later_calls: bool = False
    fall_back: bool = False


def capture(target: Target, python: str, cwd: Path, watch: Watch, patience: Patience, budget: Budget | None = None) -> Capture:
    """Run the program `target` once with the interpreter `python` in the directory `cwd`, and return what failed.

    `watch` says what to look for, `patience` how long the run may take. Raises Interrupted if `budget` was cancelled.
    """
    out = watch.out
    wanted = budget.should_continue if budget else None
    out.mkdir(parents=True, exist_ok=True)
    (out / ORDER_FILE).write_text(encode(_order(target, watch)), encoding="utf-8")
    if watch.made is not None:
        started = time.monotonic()
        watch.made.wait(patience.most * PROBE_SHARE, wanted)
        patience = replace(patience, most=max(0.0, patience.most - (time.monotonic() - started)))
    if not watch.cache.is_dir() or not any(watch.cache.iterdir()):  # a used one may hold links that a program left
        toolchain.seed(watch.cache)
    began = time.time()
    outcome = run_process(
        command(python, "capture", str(out / ORDER_FILE)),
        patience,
        env={
            **environment.of_workers(watch.cache),
            "TORCH_COMPILE_DEBUG_DIR": str(out / "pytorch"),
            **({"CUDA_LAUNCH_BLOCKING": "1"} if watch.synchronous else {}),
        },
        cwd=cwd,
        wanted=wanted,
        box=watch.box,
        linked=target.script is not None,
        write=(out, watch.box.share(watch.cache)) if watch.box else (),
    )
    returned = time.monotonic()
    # not inside: a program may have left a link of that name there
    log = out.with_name(f"{out.name}.log.txt")
    log.write_text(outcome.text, encoding="utf-8")
    written = read_facts(out / RUN_FILE, RunFacts)
    ended = _end_of_program(outcome, written, returned)
    printed = outcome.stdout
    outcome, child = _end_in_compiler(ended, written, out, ended.text + log.read_text(encoding="utf-8"), target.name)
    if child is not None:
        outcome = _end_of_child(outcome, child, began)
    return _brought_back(target, out, log, written or {"status": "infra"}, ended, outcome, child).model_copy(update={"prints": (printed,)})


def _order(target: Target, watch: Watch) -> CaptureOrder:
    compare = watch.compare
    return CaptureOrder(
        script=str(target.script) if target.script else None,
        module=target.module,
        file=target.file,
        argv=target.argv,
        out=str(watch.out),
        check=compare is not None,
        strict=compare is not None and compare.strict,
        tolerance=compare.values if compare else None,
        beforehand=watch.beforehand,
        synchronous=watch.synchronous,
        dump=compare is None and not watch.beforehand and not watch.synchronous and not watch.as_eager and not watch.fall_back,
        afterwards=watch.afterwards,
        as_eager=watch.as_eager,
        later_calls=watch.later_calls,
        fall_back=watch.fall_back,
    )


def _end_of_program(outcome: Outcome, written: RunFacts | None, returned: float) -> Outcome:
    """How the program ended, from what its process had `written`; else how that process ended, which was over at the time `returned`."""
    if not written or (outcome.status in ("timeout", "signal") and "compared" not in written):
        return outcome
    # comparing is not part of the program: its time does not count, nor does a crash during it
    own = 1.0 - min(1.0, (returned - written.get("ended", returned)) / max(outcome.elapsed, 1e-9))
    return Outcome(
        status=written["status"],
        # if it never came to run the program, what it printed says why
        text=written.get("text", "" if written["status"] != "infra" else outcome.text),
        exit=written.get("exit"),
        calls=written.get("calls", 0),
        seconds=own * outcome.seconds,
        elapsed=own * outcome.elapsed,
    )


def _end_in_compiler(
    ended: Outcome, written: RunFacts | None, out: Path, printed: str, script: str
) -> tuple[Outcome, children.FailedChild | None]:
    """The failure to minimize, for a program that `ended` like this: its end, or the compiler's exception that it caught. Also the process
    in which that happened, if the program started one and `printed` its failure."""
    if ended.status in ("raised", "exit") and (child := children.failing(out, printed)):
        return ended, child
    outcome = _caught(ended, written, out, script)
    of_program = signature_of(outcome, script=script)
    child = None
    if outcome.status == "exit" or (of_program is not None and not _is_of_compiler(of_program)):
        child = children.dead(out) or children.failing(out, printed, ended=True)
        if child is None and outcome.status == "timeout":
            child = children.failing(out, printed)
    return outcome, child


def _end_of_child(outcome: Outcome, child: children.FailedChild, began: float) -> Outcome:
    """The outcome with the end of the process `child`: the program, which started at the time `began`, may report another error."""
    end = outcome.model_copy(update={"status": child.end.status, "text": child.end.text, "signal": child.end.signal})
    if outcome.status != "timeout":
        return end
    # after that, the program only waited for something that never comes
    share = min(1.0, max(0.0, child.time - began) / max(outcome.elapsed, 1e-9))
    return end.model_copy(update={"seconds": share * outcome.seconds, "elapsed": share * outcome.elapsed, "cut": False})


def _brought_back(
    target: Target, out: Path, log: Path, facts: RunFacts, ended: Outcome, outcome: Outcome, child: children.FailedChild | None
) -> Capture:
    signature = signature_of(outcome, script=target.name)
    own = child is None and signature is not None and is_own_verdict(signature, outcome, script=target.name)
    escaped = _left_compiler(out, target.name) if child is None or outcome.status == "ok" else None
    in_own_words = outcome is ended and outcome.status == "raised" and signature is not None and not _is_of_compiler(signature)
    wrong_there: tuple[Region, ...] = ()
    if outcome.status == "ok" or own:
        wrong_there = tuple(r for place in children.directories(out) for r in read_regions(place) if r.failed == "accuracy")
    return Capture(
        outcome=outcome,
        ended=ended if outcome is not ended else None,
        child=child.name if child else "",
        rank=children.rank(child.directory) if child else None,
        call=children.facts(child.directory)["call"] if child else "",
        argv=children.arguments(child.directory, target.file) if child else None,
        main=children.main(child.directory, target.file) if child else None,
        children=bool(children.directories(out)),
        compared=read_regions(out / COMPARED_DIR) if facts.get("compared") and not children.directories(out) else None,
        signature=signature,
        own_verdict=own,
        own_code=child is None and signature is not None and not own and is_of_own_code(signature, outcome, script=target.name),
        regions=read_regions(child.directory) if child else (*read_regions(out), *wrong_there),
        versions=facts.get("versions", {}),
        log=log,
        tolerance=_tolerance(facts, child.directory if child else None, out),
        errors=(pair[0], pair[1]) if (pair := facts.get("errors")) and len(pair) == 2 else None,
        whole=facts.get("whole", False),
        off=facts.get("off", ""),
        swallows=facts.get("swallows", False),
        installed=tuple(facts.get("installed", ())),
        beside=tuple(facts.get("beside", ())),
        looked=tuple(facts.get("looked", ())),
        behind=escaped[0] if escaped and in_own_words else "",
        caught=escaped[1].line() if escaped and "ok" in (outcome.status, ended.status) else "",
        test=facts.get("test", ""),
        again=facts.get("again", False),
        pooled=facts.get("pooled", False),
    )


def raised_in_comparing(outcome: Outcome) -> bool:
    """Whether a run with this `outcome` failed in the code that compares numbers, rather than in what it compares."""
    return outcome.status == "raised" and last_path(outcome.text).endswith(_COMPARING)


def _tolerance(facts: RunFacts, child: Path | None, out: Path) -> tuple[float, ...] | None:
    """The tolerance of the last comparison in the process that failed. If that is the program's own and has none, of a process that it
    started."""
    if child is not None:
        given = children.facts(child)["tolerance"]
    elif (given := facts.get("tolerance")) is None:
        given = next((own for place in children.directories(out) if (own := children.facts(place)["tolerance"]) is not None), None)
    return None if given is None else tuple(given)


def _caught(outcome: Outcome, facts: RunFacts | None, out: Path, script: str) -> Outcome:
    """The compiler's exception as the end of a program that caught it and then failed with an error of its own; else `outcome`.

    The program's error has to follow from the exception: it was raised while that was handled, or names its class or its message. A program
    that exits with only a status gives no reason, so it is taken to exit because of the last exception that it got from the compiler. What
    ended a thread was caught by nobody, and does not show in how the program ends.
    """
    died = outcome.status == "ok" and facts is not None and facts.get("threaded", False)
    if outcome.status not in ("exit", "raised") and not died:
        return outcome
    text = facts.get("behind", "") if facts else ""
    if not text and (escaped := _left_compiler(out, script)):
        last, of_compiler = escaped
        # `os._exit` leaves no facts, whatever was printed before
        left = died or outcome.status == "exit" or facts is None
        text = last if left or _names(outcome, of_compiler, script) else ""
    return outcome.model_copy(update={"status": "raised", "text": text}) if text else outcome


def _left_compiler(out: Path, script: str) -> tuple[str, Signature] | None:
    """The traceback and the signature of the last exception that left the compiler for the program; None if there was none."""
    escaped = read_facts(out / ESCAPED_FILE, EscapedFile)
    found = signature_of(Outcome(status="raised", text=escaped["text"]), script=script) if escaped is not None else None
    return (escaped["text"], found) if escaped is not None and found is not None and _is_of_compiler(found) else None


def _is_of_compiler(signature: Signature) -> bool:
    """Whether a failure is in the compiler or in what it generated, rather than in the program's own code."""
    return signature.phase is not Phase.RUN or (signature.frame or "").startswith(("torch/_inductor/", "torch/_functorch/"))


def _names(outcome: Outcome, of_compiler: Signature, script: str) -> bool:
    """Whether the program's own error names the class of the compiler's exception, or repeats its message."""
    own = signature_of(outcome, script=script)
    if own is None or own.kind is not Kind.EXCEPTION or own.phase is not Phase.RUN or own.same_across_forms(of_compiler):
        return False
    # a built-in class may be named for any reason
    named = any(name in outcome.text for name in of_compiler.exception if not hasattr(builtins, name))
    said = _words(of_compiler.said[:MOST_WORDS])
    return named or bool(said and said in _words(outcome.text))


def _words(text: str) -> str:
    """What a `text` says in however many lines."""
    return " ".join(_WORD.findall(text))
