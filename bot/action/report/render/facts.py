"""Describes what is known about a result, in words."""

from __future__ import annotations

from collections.abc import Mapping

from bot.action.report.render.markdown import cell, cell_lines, code, fence_within
from bot.action.report.render.text import number
from bot.models.failure import Kind, Stage
from bot.models.result import Elsewhere, Result

_LONGEST = 6_000  # bytes of a reason
# Format of what is known about the machine and the important packages.
_MACHINE = {
    "gpu": "{}",
    "driver": "driver {}",
    "cuda": "CUDA {}",
    "cpu": "{}",
    "os": "{}",
    "compiler": "{}",
    "torch": "torch {}",
    "triton": "triton {}",
    "python": "Python {}",
}
_STAGE = {
    Stage.SOURCE: "source: the script itself",
    Stage.DYNAMO: "dynamo: the graph that Dynamo traced",
    Stage.AOT: "aot: the graph that Inductor was given",
    Stage.AOT_INDUCTOR: "aot_inductor: the program that was packaged",
}


def why(result: Result) -> str:
    """The reason that `result` gives, and whether it was the machine's fault."""
    reason = result.reason or ""
    # the reason for an error of the program in eager includes its traceback
    said = [fence_within(reason, _LONGEST) or code(reason)] if "\n" in reason.strip() else [code(reason)] if reason else []
    if result.machine_fault:
        again = reason.startswith(result.machine_fault)
        said.append("This is the machine's fault." if again else f"The machine's fault: {code(result.machine_fault)}")
    return "\n\n".join(said)


def figures(result: Result) -> str:
    """How much smaller `result` became, in one line; empty if nothing was reduced."""
    reduced = result.reduction
    pairs = [
        ("ops", reduced.ops_before, reduced.ops_after),
        ("lines", reduced.lines_before, reduced.lines_after),
        ("input elements", reduced.input_elements_before, reduced.input_elements_after),
    ]
    said = [f"{number(before)} → {number(after)} {noun}" for noun, before, after in pairs if before and after is not None]
    return ", ".join(said) if said and result.files.repro else ""


def evidence(result: Result) -> list[tuple[str, str]]:
    """The rows of the table about `result`. The right column is HTML."""
    rows = []
    proof = result.verification
    if here := _here(result.versions):
        rows.append(("Ran on", cell(here, 400)))
    if proof.runs:
        rows.append(("Fails in the same way, alone, in fresh processes", f"{number(proof.same)} of {number(proof.runs)}"))
    if proof.runs or proof.eager != "not_applicable":
        rows.append(("Without the compiler", _control(result)))
    if result.evidence.nearness:
        rows.append(("Against float64", cell(result.evidence.nearness)))
    if result.stage is not None:
        rows.append(("Form", _STAGE[result.stage]))
    if result.compile_only:
        arch = result.versions.get("cuda_arch", "")
        rows.append(("Only compiled", f"{f'for sm_{cell(arch)}, ' if arch else ''}without a GPU: nothing was run"))
    if result.culprit:
        rows.append(("To blame", cell(result.culprit)))
    if result.evidence.passes_if:
        rows.append(("It passes with this change", cell_lines(result.evidence.passes_if)))
    if result.exported_program is not None:
        again = "fails in the same way" if result.exported_program.same_signature else cell(result.exported_program.reason or "does not")
        rows.append(("The exported program, loaded again", again))
    if result.files.kernel is not None:
        rows.append(("The kernel alone, without the graph", "kernel.py fails in the same way"))
    if result.evidence.other_failures:
        rows.append(("Other failures that the search met", cell_lines("\n".join(result.evidence.other_failures))))
    if result.evidence.elsewhere:
        rows.append(("With other interpreters", cell_lines("\n".join(map(_elsewhere, result.evidence.elsewhere)))))
    if result.sandbox:
        rows.append(("Sandbox", cell(", ".join(result.sandbox))))
    return rows


def _here(versions: Mapping[str, str]) -> str:
    """Hardware, system and packages in one line, as far as they are known."""
    return ", ".join(words.format(versions[name]) for name, words in _MACHINE.items() if versions.get(name))


def _elsewhere(other: Elsewhere) -> str:
    torch = other.versions.get("torch")
    return f"{f'torch {torch}' if torch else 'without torch'}: {'fails in the same way' if other.same else other.said or 'does not'}"


def _control(result: Result) -> str:
    eager, kind = result.verification.eager, result.signature.kind if result.signature else None
    if eager == "passes":
        if kind is Kind.NO_RAISE:
            return "raises, as it should"
        # the program reports by an end of its own that compiled code does not
        missing = result.verification.rule.error
        return f"passes: something that is compiled raises {cell(missing)}, as it should" if missing else "passes"
    if eager == "fails":
        # the control may also call no compiler, or raise another error
        return "does not raise what it should" if kind is Kind.NO_RAISE else "does not pass"
    return "not run"


def reduction(result: Result) -> str:
    """How long the reduction to `result` took, and how many programs were tried."""
    reduced, timing = result.reduction, result.timing
    ended = {
        "fixed_point": "until nothing more could be removed",
        "budget": "until the time limit",
        "interrupted": "until it was interrupted",
    }
    spent = [("capture", timing.capture), ("search", timing.search), ("verification", timing.verification), ("evidence", timing.evidence)]
    in_vain = result.status in ("error", "not_reproduced") and not result.files.repro and result.ended_by == "fixed_point"
    until = "with no result" if in_vain else ended[result.ended_by]
    programs = f"{number(reduced.queries)} {'program' if reduced.queries == 1 else 'programs'} tried"
    tried = f"{programs}; the search took {number(float(reduced.seconds))} s, {until}"
    known = f"; {number(reduced.memo_hits)} {'answer was' if reduced.memo_hits == 1 else 'answers were'} known from before"
    rows = [
        f"- {tried}{known if reduced.memo_hits else ''}",
        "- " + ", ".join(f"{part} {number(float(seconds))} s" for part, seconds in spent),
        "- `reduction.jsonl` in the run's files has a line for each program",
    ]
    if result.evidence.pytorch_dump:
        rows.append("- PyTorch's own minifier dumped something: `original/pytorch` in the run's files")
    return "\n".join(rows)
