"""SECURITY.md names tests: they are there."""

from __future__ import annotations

import re
from pathlib import Path

from bot.sandbox import order

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_each_test_that_it_names_exists() -> None:
    defined = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"^ *def (test_\w+)\(", path.read_text(), re.MULTILINE)
    }
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 20
    assert named <= defined, named - defined


def test_each_layer_is_explained() -> None:
    layers = {
        order.UID,
        order.CAPABILITIES,
        order.PRIVILEGES,
        order.LANDLOCK,
        order.SIGNALS,
        order.SECCOMP,
        order.RLIMITS,
        order.NO_NETWORK,
        order.PRIVATE_TMP,
    }
    assert layers <= set(re.findall(r"`([\w-]+)`", PAGE))
