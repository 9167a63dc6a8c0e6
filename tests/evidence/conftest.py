"""Puts the pool without processes of `tests/oracle/fakes.py` within the tests' reach."""

from __future__ import annotations

import sys
from pathlib import Path

ORACLE = str(Path(__file__).resolve().parent.parent / "oracle")
if ORACLE not in sys.path:
    sys.path.insert(0, ORACLE)
