"""What is to blame: the first suspect without which the program passes."""

from __future__ import annotations

import pytest

from bot.engine.evidence.ablation import Suspect, culprit, culprit_installed, culprit_of_script, script_suspects
from bot.models.failure import Verdict
from bot.reduce.candidate import Candidate
from bot.reduce.graph.form import Graph, Input, Meta, Program, Recipe, Ref

ENTRY = "torch._inductor.config.post_grad_custom_post_pass"
X = Input("x", Meta("tensor", (2,), (1,), "float32"))


def program(**recipe: object) -> Program:
    return Program(Graph((X,), (), (Ref("x"),)), Recipe(**recipe))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "suspect", "after", "words"),
    [
        (
            program(config=((ENTRY, "p"), ("other", "1"))),
            Suspect(ENTRY, "my_pass"),
            program(config=(("other", "1"),)),
            "post_grad_custom_post_pass: my_pass",
        ),
        (
            program(options=(("post_grad_custom_post_pass", "p"), ("other", "1"))),
            Suspect(ENTRY, "my_pass"),
            program(options=(("other", "1"),)),
            "post_grad_custom_post_pass: my_pass",
        ),
        (program(setup=("line",)), Suspect(ENTRY, "P"), program(setup=("line", f"{ENTRY} = None")), "post_grad_custom_post_pass: P"),
        (
            program(),
            Suspect("", "P", device="cpu"),
            program(setup=('torch._inductor.codegen.common.custom_backend_passes["cpu"] = None',)),
            "backend pass of cpu: P",
        ),
    ],
)
def test_taken_out(before: Program, suspect: Suspect, after: Program, words: str) -> None:
    assert suspect.out_of(before) == after
    assert suspect.words == words


@pytest.mark.parametrize(
    ("line", "suspect", "words"),
    [
        (f"{ENTRY} = Swap()", Suspect(ENTRY, "Chain"), "post_grad_custom_post_pass: Swap"),
        (f"{ENTRY} = Chain(Swap())", Suspect(ENTRY, "Chain"), "post_grad_custom_post_pass: Chain"),
        (
            'torch.compile(f, options={"post_grad_custom_post_pass": mine.swap})',
            Suspect(ENTRY, "Chain"),
            "post_grad_custom_post_pass: swap",
        ),
        ('register("cpu", a("cpu"), device_custom_pass=Swap(2))', Suspect("", "Chain", device="cpu"), "backend pass of cpu: Swap"),
        (f"{ENTRY} = [a, b]", Suspect(ENTRY, "Chain"), "post_grad_custom_post_pass: Chain"),
        ("nothing()", Suspect(ENTRY, "Chain"), "post_grad_custom_post_pass: Chain"),
    ],
)
def test_a_culprit_is_called_as_the_script_calls_it(line: str, suspect: Suspect, words: str) -> None:
    assert culprit(program(), [suspect], lambda _: Verdict.PASSES, lambda _: line) == words


def test_a_script_that_is_no_graph_calls_its_culprit_as_it_is_now() -> None:
    text = "import torch\ntorch._inductor.config.b = Swap()\nf()\n"
    assert culprit_of_script(text, [Suspect("torch._inductor.config.b", "Chain")], lambda _: Verdict.PASSES) == "b: Swap"


@pytest.mark.parametrize(
    ("verdicts", "blamed"),
    [
        ({"a": Verdict.SAME, "b": Verdict.PASSES}, "b: second"),
        ({"a": Verdict.PASSES, "b": Verdict.PASSES}, "a: first"),
        ({"a": Verdict.DIFFERENT, "b": Verdict.INVALID}, None),
        ({"a": Verdict.TIMEOUT, "b": Verdict.INFRA}, None),
    ],
)
def test_only_a_program_that_passes_blames(verdicts: dict[str, Verdict], blamed: str | None) -> None:
    suspects = [Suspect("torch._inductor.config.a", "first"), Suspect("torch._inductor.config.b", "second")]

    def ask(candidate: Candidate) -> Verdict:
        assert candidate.origin == "ablation"
        return verdicts[candidate.text]

    def render(changed: Program) -> str:
        return "".join(changed.recipe.setup[-1:]).split(" = ")[0].rpartition(".")[2]

    assert culprit(program(), suspects, ask, render) == blamed


def test_nobody_is_suspected() -> None:
    assert culprit(program(), [], lambda _: Verdict.PASSES, lambda _: "") is None


SETS = """
import torch._inductor.config as inductor
from torch._inductor import config as other
import mine.config as own
inductor.post_grad_custom_post_pass = mine.drop
torch._inductor.config.joint_custom_pre_pass = make({})
other.pre_grad_custom_pass = seen
inductor.max_autotune = True
own.post_pass = seen
x.y = seen
"""


def test_a_script_names_what_it_sets_itself() -> None:
    found = script_suspects(SETS)
    assert [suspect.words for suspect in found] == [
        "post_grad_custom_post_pass: drop",
        "joint_custom_pre_pass: make",
        "pre_grad_custom_pass: seen",
    ]
    assert script_suspects("no Python (") == []
    asked: list[str] = []

    def ask(candidate: Candidate) -> Verdict:
        asked.append(candidate.text)
        return Verdict.SAME if "pre_grad_custom_pass" in candidate.text else Verdict.PASSES

    assert culprit_of_script(SETS, [Suspect("torch._inductor.config.nothing", "of it")], ask) == "pre_grad_custom_pass: seen"
    assert len(asked) == 3


@pytest.mark.parametrize(("verdict", "blamed"), [(Verdict.PASSES, "b: second"), (Verdict.SAME, None)])
def test_a_script_that_is_no_graph_names_its_culprit(verdict: Verdict, blamed: str | None) -> None:
    asked: list[str] = []

    def ask(candidate: Candidate) -> Verdict:
        asked.append(candidate.text)
        return verdict

    suspects = [Suspect("torch._inductor.config.a", "first"), Suspect("torch._inductor.config.b", "second")]
    assert culprit_of_script("config.b = second\nf()\n", suspects, ask) == blamed
    assert asked == ["pass\nf()\n"], "what the script does not set is not asked"
    backend = Suspect("", "P", device="cpu")
    assert backend.out_of_script('register("cpu", a, device_custom_pass=P)\n') == 'register("cpu", a, )\n'


LOWERING = """\
import torch
from torch._inductor import lowering as L
from torch._inductor.codegen.cpp import CppOverrides
from torch._inductor.decomposition import decompositions
from torch._inductor.lowering import register_lowering

mine = {}


def low(x):
    return x


@register_lowering(torch.ops.aten.exp.default, type_promotion_kind=None)
def other(x):
    return x


mine[1] = low
L.lowerings[torch.ops.aten.relu.default] = low
decompositions[torch.ops.aten.sin.default] = other
CppOverrides.exp = staticmethod(low)
torch._inductor.config.cpp_wrapper = True
torch.compile(torch.relu)(torch.ones(1))
"""


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        ("@register_lowering", "register_lowering(torch.ops.aten.exp.default): other"),
        ("L.lowerings[", "lowerings[torch.ops.aten.relu.default]: low"),
        ("decompositions[", "decompositions[torch.ops.aten.sin.default]: other"),
        ("CppOverrides", "CppOverrides.exp: staticmethod(low)"),
        ("mine[1]", None),
        ("torch.compile(torch.relu)", None),
    ],
)
def test_a_function_that_the_script_gives_to_the_compiler(needed: str, words: str | None) -> None:
    asked: list[str] = []

    def ask(candidate: Candidate) -> Verdict:
        asked.append(candidate.text)
        return Verdict.SAME if candidate.text.count(needed) == LOWERING.count(needed) else Verdict.PASSES

    assert culprit_installed(LOWERING, ask) == words
    assert all("def low" in text and "def other" in text for text in asked)
    assert len(asked) == len(set(asked)) <= 4


TABLE = """\
from torch.export import default_decompositions, export


def gelu(x, approximate):
    return x


def plain(x):
    return x


table = default_decompositions()
table[torch.ops.aten.gelu.default] = gelu
kept = dict()
kept["plain"] = plain
ep = export(m, (x,)).run_decompositions(table)
"""


def test_a_decomposition_in_a_table_of_torch_that_the_program_holds() -> None:
    def ask(candidate: Candidate) -> Verdict:
        assert "kept['plain'] = plain" in candidate.text, "no table of torch"
        return Verdict.SAME if "] = gelu" in candidate.text else Verdict.PASSES

    assert culprit_installed(TABLE, ask) == "table[torch.ops.aten.gelu.default]: gelu"


OPERATOR = """\
import torch


@torch.library.custom_op("mine::turn", mutates_args=("out",))
def turn(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x.flip(0))


@torch.autocast("cpu")
def step(x):
    turn(x.clone(), x)
    return x


x = torch.ones(2)
torch.testing.assert_close(torch.compile(step)(x.clone()), step(x))
"""


def test_what_eager_calls_as_well_is_not_given_to_the_compiler() -> None:
    assert culprit_installed(OPERATOR, lambda _: Verdict.PASSES) is None


def test_what_is_no_python_has_no_culprit() -> None:
    assert culprit_installed("x = (", lambda _: Verdict.PASSES) is None
