from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.report.render.markdown import fence
from bot.action.report.render.rendering import COMMENT_LIMIT, MOST_ANNOTATIONS, SUMMARY_LIMIT, annotations_of, render
from bot.action.report.render.text import clean, size
from bot.models.report import Report, Section
from bot.models.result import Evidence
from tests.action.report import github_page, reports

# Bytes beside the repro that a comment on one request needs at most for its marker and its title, which names the test.
FRAME = 1_000


@given(reports.reports, st.sampled_from([0, 1, 60, 500, 3_000, 20_000, COMMENT_LIMIT]) | st.integers(0, 100_000))
def test_never_over_the_limit(report: Report, limit: int) -> None:
    assert size(render(report, limit)) <= limit


@given(reports.reports, st.sampled_from([800, 5_000, COMMENT_LIMIT, 1_000_000]))
def test_hostile_text_stays_text(report: Report, limit: int) -> None:
    """No mention, no reference, no HTML, no link but to where we link, no second marker, nothing outside of its fence."""
    body = render(report, limit)
    assert body.startswith(reports.MARKER)
    github_page.check(body, reports.MARKER)


@given(reports.sections, st.integers(FRAME, 30_000))
def test_the_repro_is_whole_where_it_fits_alone(section: Section, limit: int) -> None:
    if section.repro is None:
        section = section.model_copy(update={"repro": "x" * 3})
    assert section.repro is not None
    block = fence(section.repro, "python")
    body = render(reports.report(section), limit)
    if size(block) + FRAME <= limit:
        assert block in body


@given(st.lists(st.integers(0, 40_000), min_size=2, max_size=4))
def test_as_many_repros_as_fit_are_whole(lengths: list[int]) -> None:
    repros = [f"# {index}\n" + "x = 1\n" * (length // 6) for index, length in enumerate(lengths)]
    parts = [Section(request=reports.request(), result=reports.result(), repro=repro) for repro in repros]
    body = render(reports.report(*parts))
    left = COMMENT_LIMIT - FRAME * len(repros)
    for repro in sorted(repros, key=size):
        left -= size(fence(repro, "python")) + 2
        if left < 0:
            break
        assert fence(repro, "python") in body


def test_sections_stay_in_their_order() -> None:
    parts = [Section(request=reports.request(), result=reports.result(), repro=f"print({index})") for index in range(3)]
    body = render(reports.report(*parts))
    places = [body.index(words) for index in range(3) for words in (f"### {index + 1}. Minimized", f"print({index})")]
    assert places == sorted(places)


def test_a_long_repro_gives_way_to_its_module_and_says_so() -> None:
    module = "class Repro(torch.nn.Module):\n    def forward(self, x):\n        return x"
    repro = f"import torch\n\n\n{module}\n\n\nx = {'[' + '1, ' * 40_000 + ']'}\n"
    body = render(reports.report(Section(request=reports.request(), result=reports.result(), repro=repro)))
    assert f"```python\n{module}\n```" in body
    assert "too many for this comment" in body
    assert size(body) <= COMMENT_LIMIT


def test_what_was_left_out_is_said() -> None:
    section = Section(
        request=reports.request(),
        result=reports.result(),
        repro="x = 1",
        exported_text="row\n" * 60_000,
        files=({"name": "exported_program.pt2", "size": 7, "sha256": "ab"},),
    )
    body = render(reports.report(section))
    assert "Shortened to fit" in body
    left = re.search(r"(\d+) more lines are in the run's files", body)
    assert left
    assert body.count("row\n") + int(left[1]) == 60_000
    assert "Shortened" not in render(reports.report(section), SUMMARY_LIMIT)


def test_a_marker_is_one_plain_line() -> None:
    for name in ("", "x-->y", "a--b", "-a", "a" * 300, "a\nb", "<!--"):
        with pytest.raises(ValueError, match="not a marker"):
            render(Report(marker=f"<!-- torch-minify:{name} -->", sections=()))


@given(st.integers(0, 3) | st.sampled_from([57, 58, 77, 78, 252, 253, 300]), st.integers(0, 3), st.integers(0, 3))
def test_a_thousand_fences(ticks: int, rows: int, tabs: int) -> None:
    repro = ("\t" * tabs + "`" * (3 + ticks) + "\r\n" * (rows + 1)) * 100
    body = render(reports.report(Section(request=reports.request(), result=reports.result(), repro=repro)))
    blocks = [text for language, text in github_page.check(body, reports.MARKER).blocks if language == "python"]
    assert [block.strip("\n") for block in blocks] == [repro.replace("\r\n", "\n").strip("\n")]


@pytest.mark.parametrize("ticks", [59, 60, 61, 79, 80, 81, 254, 255, 256, 1000])
def test_no_row_of_backticks_is_left(ticks: int) -> None:
    """As a program of a stranger showed it: a row of backticks, then words to everybody who reads the comment."""
    words = f"{'`' * ticks} @pytorch/core-maintainers fixes #1 https://evil.example"
    block = f"no kernel\n{'`' * ticks}\n\n## Security notice\n\n{words}\n\n![x](https://evil.example/x.png)\n"
    signature = reports.result().signature
    assert signature is not None
    shown = reports.result(signature=signature.model_copy(update={"message": words}), reason=block, culprit=words, versions={words: block})
    part = Section(request=reports.request(expected=words, tests=(words, words)), result=shown, repro=block, problem=block)
    page = github_page.check(render(reports.report(part)), reports.MARKER)
    assert clean(block).strip("\n") in [text.strip("\n") for _, text in page.blocks]


def test_a_fault_is_a_warning_and_a_result_a_notice() -> None:
    found = Section(request=reports.request(), result=reports.result(), repro="x = 1")
    none = Section(request=reports.request(), problem="torn\nfile")
    first, second = annotations_of(reports.report(found, none))
    assert (first.level, first.title) == ("notice", "Minimized")
    assert (second.level, second.title) == ("warning", "Could not be minimized")
    assert second.message.endswith(": torn file")


def test_github_shows_only_so_many() -> None:
    assert len(annotations_of(reports.report(*[Section(request=reports.request())] * (MOST_ANNOTATIONS + 5)))) == MOST_ANNOTATIONS


def test_what_only_the_program_calls_wrong_is_said_to_be_near() -> None:
    words = "in the program as given, by its own check alone: in the calls that were compared compiled is as near to float64 as eager"
    plain = reports.result()
    told = plain.model_copy(update={"evidence": Evidence(nearness=words)})
    shown = [render(reports.report(Section(request=reports.request(), result=result, repro="x = 1"))) for result in (plain, told)]
    assert ["Against float64" in body for body in shown] == [False, True]
