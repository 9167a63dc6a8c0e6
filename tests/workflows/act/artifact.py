"""Stands for actions/upload-artifact and download-artifact: a directory is the store. `artifact.py up|down`, inputs by environment.

Checked against download-artifact v8.0.1 (src/download-artifact.ts at the pinned commit): one artifact by name, merge-multiple, or a
pattern that one artifact alone matches is laid flat into `path`; only of several each gets a directory of its name. A name that is
not there is an error, a pattern without a match is none.
And against upload-artifact v7 (src/shared/search.ts, src/upload/upload-artifact.ts) and the toolkit's
path-and-artifact-name-validation.ts: what is hidden is left out; a name that is taken, unless it is to be overwritten, and a
file with one of `":<>|*?` or a line's end in its path are refused; links are followed; a directory without files is nothing; of
several paths, a line each, what they have in common is the root of the artifact, whether there is anything at them or not.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import sys
from pathlib import Path

store = Path(os.environ["ACT_ARTIFACTS"])
_IN_A_NAME, _IN_A_PATH = re.compile(r'["/\\:<>|*?\r\n]'), re.compile(r'[":<>|*?\r\n]')


def error(words: str) -> int:
    print(f"::error::{words}")
    return 1


def up() -> int:
    sources, name = [Path(line.strip()) for line in os.environ["A_PATH"].splitlines() if line.strip()], os.environ["A_NAME"]
    (source, *more) = sources
    root = Path(os.path.commonpath(sources)) if more else source if source.is_dir() else source.parent
    hidden = os.environ["A_INCLUDE_HIDDEN_FILES"] == "true"
    below = sorted(Path(folder) / file for one in sources for folder, _, files in os.walk(one, followlinks=True) for file in files)
    found = [*filter(Path.is_file, sources), *below]
    found = [path for path in found if hidden or not re.search(r"(?:^|/)\.", str(path.relative_to(root)))]
    if not found:
        missing = os.environ["A_IF_NO_FILES_FOUND"]
        return (
            error(f"No files were found with the provided path: {os.environ['A_PATH']}")
            if missing == "error"
            else print(f"no files: {missing}") or 0
        )
    if _IN_A_NAME.search(name):
        return error(f"The artifact name is not valid: {name}")
    for path in found:
        if _IN_A_PATH.search(str(path.relative_to(root))):
            return error(f"The path for one of the files in artifact is not valid: {path}")
    if os.environ.get("A_OVERWRITE") == "true":
        shutil.rmtree(store / name, ignore_errors=True)
    if (store / name).exists():
        return error(f"Failed to CreateArtifact: (409) Conflict: an artifact with this name already exists on the workflow run: {name}")
    for path in found:
        target = store / name / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return 0


def down() -> int:
    name, pattern, into = os.environ["A_NAME"], os.environ["A_PATTERN"], Path(os.environ["A_PATH"] or ".")
    held = sorted(path for path in store.iterdir() if path.is_dir())
    if name:
        found = [path for path in held if path.name == name]
        if not found:
            return error(f"Unable to download artifact(s): Artifact not found for name: {name}")
    else:
        found = [path for path in held if not pattern or fnmatch.fnmatchcase(path.name, pattern)]
    flat = bool(name) or os.environ["A_MERGE_MULTIPLE"] == "true" or len(found) == 1
    for path in found:
        shutil.copytree(path, into if flat else into / path.name, dirs_exist_ok=True)
    print(f"Total of {len(found)} artifact(s) downloaded")
    return 0


sys.exit({"up": up, "down": down}[sys.argv[1]]())
