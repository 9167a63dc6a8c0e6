"""Where a path in a log stands in the checkout: runners, containers and working directories put other things before it."""

from __future__ import annotations

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from bot.action.ci.failing_test import NOTEBOOK, Failure, repository_path

# What failed is in one of these; not in a text.
_FILES = (".py", NOTEBOOK)
# Files of a checkout that are looked at.
MAX_FILES = 200_000
# So deep are its directories looked at: walking them takes a call for each.
MAX_DEPTH = 60
# On runners of GitHub: the directory of work, the repository, and its checkout of the same name.
_CHECKOUT = re.compile(r"^(?:/[^/]{1,100}){0,8}?/(?:work|__w)/([^/]{1,100})/\1/")
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv", "venv", "build", "dist", "site-packages"})


class CheckoutPaths:
    """The Python files and notebooks of a checkout: their paths from its root, with slashes.

    Programs run in its `directory`, if one is named.
    """

    def __init__(self, files: Iterable[str], directory: str = "") -> None:
        self._directory = directory
        self._files: set[str] = set()
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for file in files:
            if file.endswith(_FILES) and file not in self._files:
                self._files.add(file)
                self._by_name[file.rpartition("/")[2]].append(file)

    def find(self, path: str) -> str | None:
        """The file that `path` in a log is about: its longest suffix that exists here, else the only file that ends with it.

        None where there is none, or more than one.
        """
        path = repository_path(path).lstrip("/") if not path.startswith("/") else path.replace("\\", "/").lstrip("/")
        parts = path.split("/")
        for i in range(min(len(parts), 50)):
            suffix = "/".join(parts[i:])
            # a name alone would be any directory's
            if suffix in self._files and (i == 0 or len(parts) - i > 1):
                return suffix
        below = repository_path(path)
        ends = [file for file in self._by_name.get(parts[-1], ()) if file.endswith("/" + below)]
        return ends[0] if len(ends) == 1 else None

    def locate(self, failure: Failure) -> Failure:
        """`failure` with the path of its test or program, and in its command, as the checkout has it.

        It is as it was where that cannot be told.
        """
        if failure.script:
            return replace(failure, script=self.find(failure.script) or failure.script)
        file = failure.file
        found = self._found(failure) if file else None
        if found is None:
            return failure
        # the command that the log names for the test counts from another directory, too
        program = failure.hint.program.replace(f" {shlex.quote(file)} ", f" {shlex.quote(found)} ")
        return replace(
            failure,
            test=found + failure.test[len(file) :],
            name=found if failure.name == file else failure.name,
            hint=replace(failure.hint, program=program),
            located=True,
        )

    def _found(self, failure: Failure) -> str | None:
        """The file of the test of `failure`: where programs run, before all others, but not outside of the root that the log names.

        pytest's paths count from where it was started, which is its root, or somewhere below that.
        """
        known = self._below_root(failure) if failure.root and not failure.file.startswith("/") else None
        root = known.removesuffix(failure.file) if known and known.endswith(failure.file) else ""
        own = f"{self._directory}/{failure.file}"
        return own if own in self._files and own.startswith(root) else known or self.find(failure.file)

    def _below_root(self, failure: Failure) -> str | None:
        """The file of the test of `failure`, if its path counts from its root, a directory of the machine that it ran on."""
        whole = f"{failure.root}/{failure.file}"
        below = _CHECKOUT.sub("", whole)
        if below != whole and below in self._files:
            return below
        # a directory of the checkout may be called as the checkout is
        return None if failure.file in self._files else self.find(whole)


def in_directory(root: Path) -> CheckoutPaths:
    """The Python files and notebooks below the directory `root`; links are not followed."""
    return CheckoutPaths(_walk(root))


def _walk(root: Path) -> Iterator[str]:
    left = MAX_FILES
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED and not name.startswith("."))
        below = os.path.relpath(directory, root).replace(os.sep, "/")
        if below.count("/") >= MAX_DEPTH:
            names.clear()
        for file in files:
            left -= 1
            if left < 0:
                return
            if file.endswith(_FILES):
                yield file if below == "." else f"{below}/{file}"
