"""Recorded texts, changed at random: what a hostile or a broken writer would make of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from hypothesis import strategies as st

from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.report import Download, Report, Section, Stored
from bot.models.request import Answer, Cause, CodeOrigin, Request, RequestOptions
from bot.models.result import EndedBy, Evidence, ExportedProgram, Files, Reduction, Result, Status, Timing, VerificationFacts
from tests.action.report.reports import HARM, MARKER

T = TypeVar("T")

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
# What parsers stumble over, beside what would do harm in Markdown.
ATOMS = [
    *HARM,
    "/minify",
    "\n/minify\n",
    "--test '",
    '"',
    "'",
    "–-accuracy “on”",
    "https://github.com/o/r/actions/runs/1/job/2",
    "<div>\n",
    "</div>\n",
    "<![",
    "<!DOCTYPE a [",
    "<!ENTITY a 'x'>",
    "&a;",
    "<a " * 20,
    "[" * 50,
    "(" * 60,
    "> " * 30,
    "=" * 70 + "\n",
    "-" * 70 + "\n",
    "= FAILURES =\n",
    "___ t ___\n",
    "E   RuntimeError: x\n",
    "FAILED a.py::b[c d] - x\n",
    "Traceback (most recent call last):\n",
    '  File "a.py", line 1, in f\n',
    "Fatal Python error: Aborted\n",
    "Current thread 0x1 (most recent call first):\n",
    "The above exception was the direct cause of the following exception:\n",
    "2026-11-20T00:00:00.0000000Z ",
    "\ufeff",
    "\x85",
    "\x0b\x0c",
    "{",
    "}",
    "]",
    ",",
    "null",
    "1e999",
    "9" * 400,
    "x" * 300,
    "é" * 200,
]


class Dice(random.Random):
    """Draws inputs. Hypothesis draws only its seed: drawing each part of a report by itself would cost most of the time."""

    def changed(self, seeds: Sequence[str], most: int = 6, window: int = 4_000) -> str:
        """A part of one of `seeds`, of at most `window` characters, with at most `most` changes."""
        text = self.choice(seeds)
        if len(text) > window:
            start = self.randrange(len(text) - window)
            text = text[start : start + window]
        for _ in range(self.randint(0, most)):
            at = self.randint(0, len(text))
            put = self.choice(ATOMS) * self.choice((1, 1, 1, 1, 1, 1, 40)) if self.random() < 0.8 else self.odd()
            if self.random() < 0.2:
                copied = self.randint(0, len(text))
                put = text[copied : copied + self.randint(1, 80)]
            text = text[:at] + put + text[at + self.choice((0, 0, 1, 8, 80)) :]
        return text

    def odd(self) -> str:
        """A few characters from anywhere."""
        return "".join(
            chr(self.choice((self.randrange(0x80), self.randrange(0x300), self.randrange(0x110000)))) for _ in range(self.randint(0, 6))
        )

    def text(self, most: int = 12, *, long: bool = False) -> str:
        """What would do harm, put together; `long`: perhaps many times over."""
        words = "".join(self.choice(ATOMS) if self.random() < 0.8 else self.odd() for _ in range(self.randint(0, most)))
        return words * (self.choice((30, 400)) if long and self.random() < 0.05 else 1)

    def maybe(self, value: T) -> T | None:
        return value if self.random() < 0.6 else None

    def number(self) -> int:
        return self.choice((0, 1, 3, 3, 3, -1, 10**13, 2**70, self.randrange(1000)))

    def seconds(self) -> float:
        return self.choice((0.0, 1.5, 75.0, 9000.0, -1.0, float("nan"), float("inf"), 1e300))

    def texts(self, most: int, words: int = 3) -> tuple[str, ...]:
        return tuple(self.text(words) for _ in range(self.randint(0, most)))

    def result(self) -> Result:
        """Any result that can be read."""
        runs = self.number()
        said = self.choice((None, self.signature(), self.signature()))
        return Result(
            status=self.choice(get_args(Status)),
            ended_by=self.choice(get_args(EndedBy)),
            stage=self.choice((None, *Stage)),
            compile_only=self.random() < 0.5,
            machine_fault=self.maybe(self.text()),
            reason=self.maybe(self.text(long=True)),
            signature=said,
            reduction=Reduction(**{name: self.number() for name in Reduction.model_fields if name != "seconds"}, seconds=self.seconds()),
            timing=Timing(**{name: self.seconds() for name in Timing.model_fields}),
            verification=VerificationFacts(
                runs=runs, same=self.choice((runs, self.number())), eager=self.choice(("passes", "passes", "fails", "not_applicable"))
            ),
            culprit=self.maybe(self.text(6)),
            sandbox=self.texts(3),
            versions={self.choice(("torch", "gpu", "os", self.text(3))): self.text() for _ in range(self.randint(0, 4))},
            evidence=Evidence(
                passes_if=self.maybe(self.text(long=True)),
                nearness=self.maybe(self.text()),
                other_failures=self.texts(20),
                pytorch_dump=self.random() < 0.5,
            ),
            exported_program=self.maybe(ExportedProgram(same_signature=self.random() < 0.5, reason=self.maybe(self.text()))),
            files=Files(repro=self.maybe("repro.py")),
        )

    def signature(self) -> Signature:
        return Signature(
            kind=self.choice(list(Kind)),
            phase=self.choice(list(Phase)),
            exception=self.texts(3),
            message=self.text(),
            frame=self.maybe(self.text(3)),
            signal=self.maybe(self.text(2)),
        )

    def cause(self) -> Cause:
        words = self.choice(("suggested", "possible", "no", self.text(2)))
        return Cause(verdict=words, reason=self.text(4), failure=self.text(), tests=self.texts(3), taken=self.random() < 0.5)

    def request(self) -> Request:
        """Any request that can be read."""
        program = {self.choice(("script", "command")): self.text(long=True)}
        whose = CodeOrigin(
            where=self.choice(get_args(CodeOrigin.model_fields["where"].annotation)),
            author=self.text(3),
            trusted=self.random() < 0.5,
            linked=self.random() < 0.5,
            url=self.choice((None, self.text(2), "https://github.com/owner/name/issues/1")),
            note=self.maybe(self.text(4)),
        )
        return Request(
            id=self.text(2),
            repository=self.text(2),
            commit=self.maybe(self.text(2)),
            code=whose,
            asked_by=self.text(3),
            options=RequestOptions(
                python_version=self.maybe(self.text(2)), torch_version=self.maybe(self.text(2)), budget=self.maybe(1e300)
            ),
            answer=Answer(repository="owner/name", marker=MARKER, trigger=self.maybe(1)),
            expected=self.maybe(self.text()),
            tests=self.texts(30),
            causes=tuple(self.cause() for _ in range(self.choice((0, 0, 1, 30)))),
            **program,
        )

    def section(self) -> Section:
        """Any answer."""
        names = ("exported_program.pt2", "exported_program.pt2", self.text(2))
        return Section(
            request=self.request(),
            result=self.choice((None, self.result(), self.result())),
            problem=self.maybe(self.text()),
            repro=self.maybe(self.text(long=True)),
            exported_text=self.maybe(self.text(long=True)),
            program=self.maybe(self.text()),
            traceback=self.maybe(self.text(long=True)),
            log=self.maybe(self.text(long=True)),
            files=tuple(
                Stored(name=self.choice(names), size=self.number(), sha256=self.text(2), kept=self.maybe(self.text(2))) for _ in range(2)
            ),
            download=self.maybe(
                Download(url=self.choice(("https://github.com/owner/name/x", self.text(2))), expires=self.maybe(self.text(2)))
            ),
            altered=self.random() < 0.5,
        )

    def report(self) -> Report:
        """Any comment."""
        url = self.choice((None, self.text(2), "https://github.com/owner/name/actions/runs/1"))
        return Report(marker=MARKER, sections=tuple(self.section() for _ in range(self.choice((1, 1, 1, 2, 4)))), run_url=url)

    def spoil(self, value: Any) -> None:
        """Put something else into some places of a value as JSON has it."""
        places: list[tuple[Any, Any]] = []

        def walk(node: Any) -> None:
            for key, held in list(node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()):
                places.append((node, key))
                walk(held)

        walk(value)
        for _ in range(self.randint(0, 3)):
            node, key = self.choice(places)
            if isinstance(node, dict) and self.random() < 0.3:
                node.pop(key, None)
            elif isinstance(node, dict) or key < len(node):
                node[key] = self.choice((None, -1, 0, True, [], {}, 10**30, 1e999, "", "\ud800", {"x": []}, self.text()))


dice = st.integers(0, 2**64 - 1).map(Dice)
