"""Stands for actions/upload-artifact and download-artifact: a directory is the store. `artifact.py up|down`, inputs by environment."""

from __future__ import annotations

import fnmatch
import os
import shutil
import sys
from pathlib import Path

store = Path(os.environ["ACT_ARTIFACTS"])


def up() -> int:
    source, name = Path(os.environ["A_PATH"]), os.environ["A_NAME"]
    target = store / name
    if target.exists():
        print(f"::error::an artifact {name} exists")
        return 1
    if not source.exists():
        missing = os.environ["A_MISSING"]
        print(f"no files: {missing}")
        return int(missing == "error")
    target.mkdir(parents=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)
    return 0


def down() -> int:
    name, pattern, into = os.environ["A_NAME"], os.environ["A_PATTERN"], Path(os.environ["A_PATH"] or ".")
    if name:
        shutil.copytree(store / name, into, dirs_exist_ok=True)
        return 0
    for found in sorted(store.iterdir()):
        if fnmatch.fnmatch(found.name, pattern):
            shutil.copytree(found, into / found.name)
    return 0


sys.exit({"up": up, "down": down}[sys.argv[1]]())
