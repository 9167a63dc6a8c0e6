"""What a failure is, and when two failures are the same."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, computed_field, model_validator


class Kind(str, Enum):
    """What sort of failure it is."""

    EXCEPTION = "exception"
    ACCURACY = "accuracy"
    CRASH = "crash"
    HANG = "hang"
    NO_RAISE = "no_raise"

    @property
    def ends_it(self) -> bool:
        """Whether it ends the program: an error that is raised, or a process that dies."""
        return self in (Kind.EXCEPTION, Kind.CRASH)

    @property
    def is_wrong_result(self) -> bool:
        """Whether the program runs to its end and gives a wrong result: other numbers, or no error where eager raises one."""
        return self in (Kind.ACCURACY, Kind.NO_RAISE)


class Phase(str, Enum):
    """Where in the compiler it failed. The phases are in the order in which a program passes through them."""

    DYNAMO = "dynamo"
    EXPORT = "export"
    PRE_GRAD = "pre_grad"
    AOT_AUTOGRAD = "aot_autograd"
    JOINT = "joint"
    POST_GRAD = "post_grad"
    INDUCTOR_LOWERING = "inductor_lowering"
    INDUCTOR_CODEGEN = "inductor_codegen"
    CPP_COMPILE = "cpp_compile"
    TRITON_COMPILE = "triton_compile"
    LOAD = "load"
    RUN = "run"


class Stage(str, Enum):
    """The form in which a program is minimized."""

    SOURCE = "source"
    DYNAMO = "dynamo"
    AOT = "aot"
    AOT_INDUCTOR = "aot_inductor"


# The message of a crash whose signal was raised by the allocator.
HEAP = "heap corruption"


class Verdict(str, Enum):
    """The oracle's answer about one candidate."""

    SAME = "SAME"
    DIFFERENT = "DIFFERENT"
    PASSES = "PASSES"
    TIMEOUT = "TIMEOUT"
    INVALID = "INVALID"
    INFRA = "INFRA"


class Model(BaseModel):
    """Base of all models: immutable, and unknown keys are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Signature(Model):
    """What makes two failures the same."""

    kind: Kind
    phase: Phase
    backward: bool = False
    exception: tuple[str, ...] = Field(default=(), description="class names, outermost first, root cause last")
    message: str = Field(default="", description="normalized message of the root cause")
    said: str = Field(default="", description="first line of that message as printed; never compared")
    frame: str | None = Field(default=None, description="innermost torch frame, as torch/path.py:function")
    signal: str | None = Field(default=None, description="crash: SIGSEGV, SIGABRT, ...")

    @model_validator(mode="before")
    @classmethod
    def _without_fingerprint(cls, given: Any) -> Any:
        # written for readers only: it follows from the rest
        return {key: value for key, value in given.items() if key != "fingerprint"} if isinstance(given, dict) else given

    @computed_field  # type: ignore[prop-decorator]
    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits. For two signatures of one kind they are equal if and only if `same_across_forms` is true."""
        parts = (self.kind.value, *self._essence())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def _essence(self) -> tuple[str, ...]:
        if self.kind.is_wrong_result:
            return ()
        if self.kind is Kind.CRASH:
            # corrupted memory shows as this signal in one run and as another in the next
            memory = self.signal in ("SIGSEGV", "SIGBUS") or self.message == HEAP
            return ("memory" if memory else self.signal or "", self.phase.value)
        if self.kind is Kind.HANG:
            return (self.phase.value,)
        root = self.exception[-1] if self.exception else ""
        return (self.phase.value, root, self.message)

    def same_across_forms(self, other: Signature) -> bool:
        """Whether `other` is the same failure although the scripts differ in form (and so in the outer wrappers).

        A missing error shows as the failed assertion of the script that expected it; its control shows that eager raises.
        """
        if self.kind is Kind.NO_RAISE:
            return other.kind.is_wrong_result
        return self.kind is other.kind and self._essence() == other._essence()

    def same(self, other: Signature) -> bool:
        """Whether `other` is the same failure in a script of the same form."""
        if not self.same_across_forms(other):
            return False
        same_frame = self.frame == other.frame or self.frame is None or other.frame is None
        if self.kind is Kind.EXCEPTION:
            return same_frame and (self.exception, self.backward) == (other.exception, other.backward)
        return same_frame or self.kind is not Kind.CRASH

    def line(self) -> str:
        """One line for people."""
        what = self.signal or ": ".join(self.exception)
        where = self.phase.value + (" (backward)" if self.backward else "")
        # a repro of a wrong graph compares by itself: what the program said about it is the program's
        of_program = self.kind is Kind.ACCURACY and self.exception not in ((), ("AssertionError",))
        by = "wrong numbers, of which the program says " if of_program else ""
        # the kind already says that numbers are not close, if something was raised for that
        tells = self.kind is Kind.EXCEPTION or of_program or not self.exception
        said = self.said or (self.message if tells else "")
        first = shortened(said.partition("\n")[0], 160) if self.kind is Kind.EXCEPTION or self.kind.is_wrong_result else ""
        return ": ".join(part for part in (f"{self.kind.value} in {where}", f"{by}{what}", first) if part)


def shortened(text: str, most: int) -> str:
    """`text`, or as many of its first words as fit into `most` characters and a mark that there are more."""
    if len(text) <= most:
        return text
    words = text[:most].rpartition(" ")[0]
    return f"{words if len(words) > most // 2 else text[:most]} …"
