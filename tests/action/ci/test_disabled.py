"""Issues that switch a test off."""

from __future__ import annotations

import pytest

from bot.action.ci.disabled import is_one, named_in

TITLE = "DISABLED test_pool_cpu (__main__.CpuTests)"
# The form is that of pytorch/pytorch#152511 and of the bot's issues since pytorch/test-infra#1522, which added the file.
BODY = """Platforms: linux, mac

This test was disabled because it is failing in CI. See [recent examples](https://hud.pytorch.org/flakytest?name=test_pool_cpu).

<details><summary>Sample error message</summary>

```
Traceback (most recent call last):
  File "/var/lib/jenkins/workspace/test/inductor/test_pool.py", line 3, in test_pool
AssertionError: x

To execute this test, run the following from the base repo dir:
    PYTORCH_TEST_WITH_INDUCTOR=1 python test/inductor/test_pool.py CpuTests.test_pool_cpu
```

</details>

Test file path: `inductor/test_pool.py`
"""
CAPTURED = "It is flaky ([recent examples](https://torch-ci.com/failure?failureCaptures=%5B%22{}test_pool_cpu%22%5D))."


def test_the_command_in_the_error_message() -> None:
    found = named_in(TITLE, BODY)
    assert found is not None
    assert (found.name, found.test) == ("CpuTests.test_pool_cpu", "test/inductor/test_pool.py::CpuTests::test_pool_cpu")
    assert found.hint.variables == ("PYTORCH_TEST_WITH_INDUCTOR=1",)


@pytest.mark.parametrize(
    ("title", "body", "test"),
    [
        (TITLE, "Test file path: `inductor/test_pool.py`\r\n", "test/inductor/test_pool.py::CpuTests::test_pool_cpu"),
        (TITLE, "Test file path: test/inductor/test_pool", "test/inductor/test_pool.py::CpuTests::test_pool_cpu"),
        ("DISABLED test_a (dynamo.test_misc.MiscTests)", "", "test/dynamo/test_misc.py::MiscTests::test_a"),
        # the form is that of pytorch/pytorch#152511, with the directory that of #191056
        (TITLE, CAPTURED.format("inductor%2Ftest_pool.py%3A%3ACpuTests%3A%3A"), "test/inductor/test_pool.py::CpuTests::test_pool_cpu"),
        (TITLE, CAPTURED.format("test%2Ftest_pool.py%3A%3ACpuTests%3A%3A"), "test/test_pool.py::CpuTests::test_pool_cpu"),
        (TITLE, CAPTURED.format("test%2Ftest_pool.py%3A%3AGpuTests%3A%3A"), None),
        (TITLE, "    python test/other.py Other.test_pool_cpu", None),
        # an option of the interpreter is no file
        (TITLE, "    python -cexit.py CpuTests.test_pool_cpu", None),
        (TITLE, "it is broken", None),
        ("test_pool_cpu (__main__.CpuTests) fails", BODY, None),
    ],
)
def test_the_file(title: str, body: str, test: str | None) -> None:
    found = named_in(title, body)
    assert (found.test if found else None) == test


def test_titles() -> None:
    assert is_one(TITLE)
    assert is_one("  UNSTABLE test_a (__main__.T) ")
    assert not is_one("DISABLED the whole job")
    assert not is_one("[RFC] DISABLED test_a (__main__.T)")
