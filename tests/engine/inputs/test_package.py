from __future__ import annotations

import ast
import zipfile
from pathlib import Path

import pytest

from bot.engine.inputs.take import take
from bot.engine.inputs.taken import NotUnderstood, Place
from tests.engine.inputs.test_take import named, place


def archived(tmp_path: Path, *names: str) -> Path:
    path = tmp_path / "program.pt2"
    with zipfile.ZipFile(path, "w") as out:
        for name in names:
            out.writestr(f"program/{name}", "x")
    return path


# The names in these archives are those of torch 2.13's torch.export.save, aoti_compile_and_package, package_pt2 and torch.save.
PROGRAM = ("archive_format", "byteorder", "models/model.json", "data/weights/weight_0", "data/sample_inputs/model.pt", "version")
COMPILED = ("archive_format", "byteorder", "data/aotinductor/model/abc.wrapper.so", "data/aotinductor/model/abc.wrapper.cpp", "version")


def test_an_exported_program_is_compiled_and_packaged(tmp_path):
    found = take(place(archived(tmp_path, *PROGRAM)))
    assert (found.taken_as, found.detail) == ("exported_program", "an exported program")
    assert found.text is not None
    ast.parse(found.text)
    # one after the other: each is to be seen to fail by itself
    ast.parse(found.then)
    assert ("torch.compile(program.module())" in found.text, "aoti_" in found.text) == (True, False)
    assert ("torch.compile(" in found.then, "torch._inductor.aoti_compile_and_package(program)" in found.then) == (False, True)
    given = take(place(archived(tmp_path, *PROGRAM), inputs=named(tmp_path, "inputs.pt", "")))
    assert given.text is not None
    ast.parse(given.text)
    assert "weights_only=True" in given.text
    assert given.notes == ("its inputs are read from inputs.pt",)
    assert [path.name for path in given.read] == ["program.pt2", "inputs.pt"]


def test_a_package_is_of_use_only_with_its_program(tmp_path):
    with pytest.raises(NotUnderstood, match=r"compiled code but not the program.*torch\.export\.save"):
        take(place(archived(tmp_path, *COMPILED)))
    assert take(place(archived(tmp_path, *COMPILED, *PROGRAM[2:5]))).taken_as == "package"
    with pytest.raises(NotUnderstood, match="no exported program"):
        take(place(archived(tmp_path, "data.pkl", "byteorder", "data/0", "version")))


def test_a_program_in_a_package_is_loaded_without_the_compiled_code(tmp_path):
    """torch.export.load loads that too, and then it would run where the compiler is taken out."""
    held = place(archived(tmp_path, *COMPILED, *PROGRAM[2:5]))
    found = take(held)
    assert found.text is not None
    ast.parse(found.text)
    ast.parse(found.otherwise)
    alone = held.scratch / "without_code.pt2"
    assert f"torch.export.load({str(alone)!r})" in found.text
    assert str(held.path) not in found.text
    assert f"found = torch._inductor.aoti_load_package({str(held.path)!r})(*args, **kwargs)" in found.otherwise
    assert set(found.read) == {alone, held.path}
    with zipfile.ZipFile(alone) as kept:
        assert not [name for name in kept.namelist() if "aotinductor" in name]
        assert kept.read("program/models/model.json") == b"x"
    other = take(place(archived(tmp_path, "archive_format", "byteorder", "models/first.json", "data/aotinductor/first/a.wrapper.so")))
    assert f"found = torch.export.pt2_archive._package.load_pt2({str(held.path)!r}).aoti_runners['first'](*args" in other.otherwise
    assert take(place(archived(tmp_path, *PROGRAM))).otherwise == ""


def test_of_several_programs_one_is_chosen(tmp_path):
    held = archived(tmp_path, *PROGRAM[:2], "models/first.json", "models/second.json")
    found = take(place(held))
    assert "its programs: first, second; first is taken, --graph chooses" in found.notes
    text = take(Place(held, tmp_path, graph="second")).text
    assert text is not None
    assert ".exported_programs['second']" in text
    with pytest.raises(NotUnderstood, match=r"without a program 'third'; it has first, second"):
        take(Place(held, tmp_path, graph="third"))


def test_an_archive_of_a_later_format_is_refused(tmp_path):
    path = archived(tmp_path, *PROGRAM)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 99  # the version that is needed to read the first of its files
    path.write_bytes(content)
    with pytest.raises(NotUnderstood, match="no archive"):
        take(place(path))
