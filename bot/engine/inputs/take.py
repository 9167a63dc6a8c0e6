"""Finds out what an input is, from its content and not only from its name."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace
from pathlib import Path

from bot.engine.inputs import archive, dump, folder, graphs, notebook, package, quoted, trace
from bot.engine.inputs.taken import MOST_BYTES, DumpedGraph, NotUnderstood, Place, Taken

_PYTHON_SUFFIXES = (".py", ".pyw")
_BINARY = {b"\x7fELF": "a compiled program", b"\x89PNG": "a picture", b"%PDF": "a PDF", b"\x80": "a pickle", b"\xff\xd8\xff": "a picture"}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LFS = b"version https://git-lfs.github.com/spec/"
_TRACEBACK = re.compile(r"^\S*\s?Traceback \(most recent call last\):", re.M)
_CI_LOG = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ", re.M)


def take(place: Place) -> Taken:
    """The input at `place` as a Python program. Raises NotUnderstood if it is nothing that can be run; the message says what it looks
    like."""
    path = place.path
    if path.is_dir():
        return graphs.taken(_of_directory(path, place.scratch), place)
    if not path.is_file():
        raise NotUnderstood("neither a file nor a directory")
    head = folder.head(path)
    if head.startswith(_LFS):
        raise NotUnderstood("a pointer of Git LFS: `git lfs pull` brings the file itself")
    if path.suffix == ".pt2":
        return package.read(place)
    # whatever its name: a file that was attached to an issue may have got the name of a script
    if trace.is_trace(head):
        return graphs.taken(folder.of_logs([path]), place)
    is_json = head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
    if is_json and (path.suffix == ".ipynb" or '"nbformat"' in _whole(path)):
        return notebook.read(_whole(path))
    if path.suffix in _PYTHON_SUFFIXES:
        return _of_script(place)
    if archive.is_archive(path):
        return _of_archive(place)
    return _of_text(place, head)


def _of_directory(root: Path, scratch: Path) -> graphs.Held:
    """The graphs in a directory, or else in the archives in it."""
    try:
        return folder.read(root)
    except NotUnderstood:
        if not (packed := folder.archives(root)):
            raise
    unpacked = 0
    for number, path in enumerate(packed):
        unpacked = archive.unpack(path, scratch / f"archive{number}", unpacked)
    held = folder.read(scratch)
    return replace(held, what=f"{held.what}, in an archive,")


def _of_archive(place: Place) -> Taken:
    """An archive of logs or dumps; one that torch wrote, whatever its name, is a package."""
    if archive.is_of_torch(place.path):
        return package.read(place)
    root = place.scratch / "archive"
    archive.unpack(place.path, root)
    try:
        held = _of_directory(root, place.scratch / "inner")
    except NotUnderstood as error:
        if len(programs := folder.programs(root)) == 1:
            return _inside(programs[0], place, "in an archive")
        raise NotUnderstood(f"an archive of {error}") from error
    return graphs.taken(replace(held, what=f"{held.what.removesuffix(', in an archive,')}, in an archive,"), place)


def _inside(path: Path, place: Place, where: str) -> Taken:
    """The program in the file `path`, which came out of the input."""
    found = take(replace(place, path=path))
    return replace(found, detail=f"{found.detail}, {where}", text=_whole(path) if found.text is None else found.text)


def _of_script(place: Place) -> Taken:
    path = place.path
    text = _whole(path)
    if not dump.is_dump(text):
        count = text.count("\n") + (not text.endswith("\n"))
        return Taken("script", f"a Python script of {count:,} lines" if count != 1 else "a Python script of one line")
    text = folder.text_of(path)
    found = dump.read(text)
    what = f"a launcher of PyTorch's minifier (level {found.level})" if found.launcher else f"a repro (level {found.level})"
    held = graphs.Held("launcher" if found.launcher else "runnable", what, (DumpedGraph(path.stem, text, beside=path.parent),))
    return graphs.taken(held, place)


def _of_text(place: Place, head: bytes) -> Taken:
    """A file whose name says nothing: Python, a text that quotes a program, or not understood."""
    if head.startswith(_UTF16):
        raise NotUnderstood("a text in UTF-16, which Python does not read: save it as UTF-8")
    if kind := next((kind for magic, kind in _BINARY.items() if head.startswith(magic)), "a binary file" if b"\0" in head else ""):
        raise NotUnderstood(kind)
    text = _whole(place.path)
    if quoted.is_python(text):
        return _of_script(place)
    if (found := quoted.program(text)) is not None:
        program, where = found
        path = place.scratch / f"{place.path.stem}.py"
        path.write_text(program, encoding="utf-8")
        return _inside(path, place, where)
    if _TRACEBACK.search(text) or _CI_LOG.search(text):
        of_ci = _CI_LOG.search(text) is not None
        log = "a log of a CI job" if of_ci else "a traceback, or a log with one"
        hint = "; `torch-minify candidates --log FILE` lists the failures in it with their commands" if of_ci else ""
        raise NotUnderstood(f"{log}: it says how a program failed, but does not hold the program{hint}")
    raise NotUnderstood("a text that is no Python")


def _whole(path: Path) -> str:
    """The text of a file. Raises NotUnderstood if it is empty, or larger than any program."""
    if path.stat().st_size > MOST_BYTES:
        raise NotUnderstood(f"a file of {path.stat().st_size:,} bytes, more than any program has")
    text = path.read_bytes().removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    if not text.strip():
        raise NotUnderstood("an empty file")
    return text
