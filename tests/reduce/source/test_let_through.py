"""Scripts without what catches their failure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.source.let_through import forms, let_through

SCRIPT = """import sys
from contextlib import suppress


def read():
    try:
        return open("no")
    except OSError:
        return None


def main():
    with suppress(KeyError):
        fail()


if __name__ == "__main__":
    try:
        main()
    except Exception:  # whatever
        sys.exit(1)
    else:
        print("well")
    finally: print("end")
"""
NAMED = """import sys
from contextlib import suppress


def read():
    try:
        return open("no")
    except OSError:
        return None


def main():
    fail()


if __name__ == "__main__":
    main()
    print("well")
    print("end")
"""


def test_the_handlers_around_the_failure_go_first_then_all() -> None:
    (first, lines), (second, _) = let_through(SCRIPT, (14, 19))
    assert first == NAMED
    assert [first.split("\n")[line - 1].strip() for line in lines] == ["fail()", "main()"]
    assert second == NAMED.replace(
        '    try:\n        return open("no")\n    except OSError:\n        return None\n', '    return open("no")\n'
    )


def test_a_handler_somewhere_else_is_all_there_is_to_take_out() -> None:
    ((text, _),) = let_through(SCRIPT.replace("    with suppress(KeyError):\n        fail()", "    fail()"), ())
    assert "except" not in text


def test_where_nothing_is_caught_there_is_nothing() -> None:
    assert list(let_through("try:\n    f()\nfinally:\n    g()\nwith suppress(A), b:\n    h()\n", (2,))) == []
    assert list(let_through("try:\n", (1,))) == []


BLOCKS = st.sampled_from(
    (
        "f()\n",
        "try:\n    f()\nexcept A:\n    g()\n",
        "try:\n    f()\nexcept (A, B) as b:\n    raise\nelse:\n    g()\nfinally:\n    h()\n",
        "with suppress(A):\n    f()\n",
        "def f():\n    with suppress(A), b:\n        try:\n            g()\n        except: pass\n",
    )
)


@given(st.text() | st.lists(BLOCKS | st.text(max_size=3), max_size=6).map("".join))
def test_any_text(text: str) -> None:
    for changed, _ in let_through(text, (1,)):
        compile(changed, "x", "exec")


PRINTS = """import logging
import traceback

log = logging.getLogger(__name__)
try:
    fn()
except RuntimeError as error:
    print("eager", error)
    traceback.print_exc()
try:
    other()
except RuntimeError: traceback.print_exc()
except ValueError:
    log.exception("no value")
except KeyError:
    print(traceback.format_exc(), file=log)
out = torch.compile(fn)()
log.error("it was accepted")
raise SystemExit("it was accepted")
"""


def test_one_that_leaves_with_a_status_begins_without_printed_tracebacks() -> None:
    """What it prints of an error that it handled would be taken for its end."""
    (found, lines), itself = forms(PRINTS, (17,), caught=False, left=True)
    assert "print_exc" not in found
    assert "log.exception" not in found
    assert "format_exc" not in found
    assert 'print("eager", error)' in found
    assert found.endswith('log.error("it was accepted")\nraise SystemExit("it was accepted")\n')
    assert [found.split("\n")[line - 1] for line in lines] == ["out = torch.compile(fn)()"]
    assert itself == (PRINTS, (17,))


def test_any_other_begins_as_it_is() -> None:
    assert list(forms(PRINTS, (17,), caught=False, left=False)) == [(PRINTS, (17,))]
    assert list(forms("raise SystemExit(1)\n", (), caught=False, left=True)) == [("raise SystemExit(1)\n", ())]


TWICE = """for strict in (False, True):
    try:
        export(strict)
    except Exception:
        failed = True
    except (KeyError, OSError) as error: print(error)
    try:
        other()
    except ValueError:
        pass
if failed:
    raise SystemExit(1)
"""
AGAIN = """for strict in (False, True):
    try:
        export(strict)
    except Exception as caught:
        if type(caught).__name__ == "UserError":
            raise
        failed = True
    except (KeyError, OSError) as error:
        if type(error).__name__ == "UserError":
            raise
        print(error)
    try:
        other()
    except ValueError:
        pass
if failed:
    raise SystemExit(1)
"""


def test_where_another_exception_is_caught_first_it_still_is() -> None:
    """The first turn raises another error, which let through would be the end."""
    *_, (last, lines) = let_through(TWICE, (3,), "UserError")
    assert last == AGAIN
    assert lines == (3,)
    assert (last, lines) in forms(TWICE, (3,), caught=True, left=False, raised=("UserError", "GuardError"))
    assert len(list(let_through(TWICE, (3,)))) == 2


def test_a_handler_of_everything_stays() -> None:
    assert len(list(let_through("try:\n    f()\nexcept:\n    pass\n", (2,), "UserError"))) == 1
