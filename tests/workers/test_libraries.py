"""Libraries that a script imports, read from its text."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from bot.inside.protocol import Question
from bot.workers.libraries import imports_of, libraries_of
from bot.workers.pool import Pool
from tests.probes import probed
from tests.processes import children_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import torch, os\nimport numpy as np\nfrom torch import nn\n", ()),
        ("import torch\nfrom transformers import A, B\n", ("transformers:A,B",)),
        ("import a.b as c\ndef f():\n    from d.e import *\n    from . import x\n", ("a.b", "d.e")),
        ("from a import b\nfrom a import b\n", ("a:b",)),
        ("import a\nthis is no Python\n", ()),
    ],
)
def test_imports(text: str, words: tuple[str, ...]) -> None:
    assert imports_of(text) == words
    assert libraries_of(text) == {word.partition(":")[0].partition(".")[0] for word in words}


PROBE = """
import sys
print("it is here" if "{name}" in sys.modules else "it is not")
import {name}
import torch
torch.compile(lambda x: x, backend="eager")(torch.ones(2))
"""
GOOD = "import math\n"
# as gRPC, or a metrics client, does it
THREADED = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code", "warm"), [("good_library", GOOD, True), ("threaded_library", THREADED, False)])
def test_a_library_is_imported_once_where_that_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str, warm: bool
) -> None:
    place = tmp_path / "site-packages"
    place.mkdir()
    (place / f"{name}.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(place))
    others = set(children_of(os.getpid()))  # of tests that keep a pool
    with Pool(sys.executable, probed(tmp_path / "cache"), tmp_path / "workers.log") as pool:

        def seen(text: str) -> bool:
            outcome, facts = pool.ask(Question(text, "run", 60.0))
            assert outcome.status == "ok", outcome.text
            return "it is here" in facts["printed"]

        probe = PROBE.format(name=name)
        assert not seen(probe)
        until = time.monotonic() + 120
        # the second such script starts a parent with the library; one that may not be used ends by itself
        while not (found := seen(probe)) and len({*children_of(os.getpid())} - others) > 1 and time.monotonic() < until:
            pass
        assert found is warm
        assert not seen(probe.replace(f"import {name}", "")), "a script that lacks the import has to do without it"
        assert seen(probe) is warm
