"""What pytest shows of a failure, in an excerpt that begins below its title."""

from __future__ import annotations

import re
from itertools import pairwise

from bot.action.ci.asked import CommandedTest, asked
from bot.action.ci.failing_test import NO_HINT, Failure, repository_path
from bot.action.ci.pytest_log import MAX_SECTION, running
from bot.action.ci.pytest_text import as_traceback

# The name of a test alone on its line, or in ticks among words that announce what is below.
_BARE = re.compile(
    r"(?:(?P<words>[^`\n]{0,60}`))?(?P<name>(?:[\w./-]{1,300}\.py::)?(?:\w{1,100}(?:\.|::)){0,2}test_\w{1,200}(?:\[\S{1,300}\])?)"
    r"(?(words)`[^`\n]{0,60}:) {0,3}$"
)
# The first place that pytest shows of a test's stack is in its file.
_TEST_PLACE = re.compile(r"(?P<file>(?:[^\s:]{1,500}/)?(?:test_\w{1,200}|\w{1,200}_test)\.py):\d{1,7}: ?(?:in test\w{0,200}|\w{0,200})$")


def shown_in(shown: list[str]) -> Failure | None:
    """The failure that pytest has `shown` in such lines, without its title; None where there is none."""
    if not any(line.startswith("E   ") or ": in " in line for line in shown):
        return None
    tests = {CommandedTest(test) for test in map(running, shown) if test}
    named = asked(shown) if not tests else tests.pop() if len(tests) == 1 else None
    test, hint = (named.test, named.hint) if named else ("", NO_HINT)
    if not test:
        # somebody who copied the excerpt may have put the name above it
        above = pairwise(line for line in shown if line.strip("` "))
        test = next((found["name"] for line, below in above if below.startswith(("> ", "E  ")) and (found := _BARE.match(line))), "")
    file = "" if test else next((repository_path(found["file"]) for line in shown if (found := _TEST_PLACE.match(line))), "")
    return Failure(test.partition("::")[2] or "a test", test, as_traceback("\n".join(shown)[-MAX_SECTION:]), hint=hint, script=file)
