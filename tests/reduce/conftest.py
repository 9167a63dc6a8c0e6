"""Puts the free oracle of `scripts/curve.py`, and the small world of `world.py`, within the tests' reach."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent.parent / "scripts"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
