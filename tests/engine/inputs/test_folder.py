"""Directories and archives as torch 2.13 and tlparse 0.4.12 write them (names checked against a run of both)."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from bot.engine.inputs import folder
from bot.engine.inputs.take import take
from bot.engine.inputs.taken import NotUnderstood, Place, Taken
from tests.engine.inputs.test_dump import AOT
from tests.engine.inputs.test_trace import end, graph

RUN = AOT.replace("command='minify'", "command='run'")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def taken(path: Path, tmp_path: Path, **more: str) -> Taken:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return take(Place(path, scratch, torch="2.13.0+cpu", **more))


def test_logs_of_several_ranks_name_the_rank_by_their_file(tmp_path):
    # each process may believe that it is rank 0
    for rank in range(3):
        failed = ("InductorError", "no") if rank == 2 else None
        write(
            tmp_path / "t" / f"dedicated_log_torch_trace_rank_{rank}_ab{rank}.log",
            graph(0, text=RUN, rank=0) + end(0, rank=0, failed=failed),
        )
    found = taken(tmp_path / "t", tmp_path)
    assert found.taken_as == "trace"
    assert found.detail == "traces of 3 processes dumped by torch 2.13.0+cpu, 3 graphs: rank2:0/0 failed (InductorError: no), 1 ops"
    assert "its graphs: rank0:0/0 (compiled), rank1:0/0 (compiled), rank2:0/0 (failed); --graph chooses one" in found.notes


def test_another_graph_can_be_chosen_and_one_that_is_not_there_is_said(tmp_path):
    write(tmp_path / "t.log", graph(0, text=RUN) + end(0) + graph(1, text=RUN) + end(1, failed=("E", "x")))
    assert "0/0 compiled" in taken(tmp_path / "t.log", tmp_path, graph="0/0").detail
    (tmp_path / "scratch").rmdir()
    with pytest.raises(NotUnderstood, match=r"without a graph '9/9'; it has 0/0 \(compiled\), 1/0 \(failed\)"):
        taken(tmp_path / "t.log", tmp_path, graph="9/9")


def test_the_output_of_tlparse_with_and_without_the_copy_of_its_log(tmp_path):
    write(tmp_path / "tl_out" / "rank_1" / "raw.log", graph(0, text=RUN) + end(0, failed=("E", "x")))
    write(tmp_path / "tl_out" / "rank_0" / "raw.log", graph(0, text=RUN) + end(0))
    assert "rank1:0/0 failed (E: x)" in taken(tmp_path / "tl_out", tmp_path).detail
    (tmp_path / "scratch").rmdir()
    other = tmp_path / "other"
    write(other / "-_0_0_0" / "fx_graph_runnable_9.txt", RUN)
    write(other / "-_0_0_0" / "inductor_output_code_abc_12.txt", "x")
    write(other / "-_1_0_0" / "fx_graph_runnable_10.txt", RUN)
    page = "<p>Failure Exception: <pre>torch.InductorError</pre></p>\n<p>Failure Reason: <pre>a &lt; b\n</pre></p>"
    write(other / "-_1_0_0" / "compilation_metrics_14.html", page)
    assert "2 graphs: 1/0 failed (torch.InductorError: a < b)" in taken(other, tmp_path).detail


def test_a_debug_directory_gives_the_newest_runnable_of_each_graph(tmp_path):
    root = tmp_path / "torch_compile_debug"
    # as torch 2.13 does
    write(root / "tlparse" / "dedicated_log_torch_trace_alay81zs.log", graph(0, text=RUN) + end(0))
    for run, compiled in (("run_2026_11_23_06_46_53_436874-pid_5", True), ("run_2026_11_23_07_00_00_000000-pid_6", False)):
        for model in ("model__0_forward_1.0", "model__1_backward_2.1"):
            runnable = write(
                root / run / "torchinductor" / model / "fx_graph_runnable.py",
                RUN.replace("aten.cos", f"aten.{'cos' if compiled else 'sin'}"),
            )
            os.utime(runnable, (1, 1 if compiled else 2))
            if compiled or "forward" in model:
                write(runnable.with_name("output_code.py"), "x")
    found = taken(root, tmp_path)
    assert found.taken_as == "debug_dir"
    assert "2 graphs: model__1_backward_2.1 did not end" in found.detail
    assert found.text is not None
    assert "aten.sin" in found.text
    assert "aten.cos" not in found.text


def test_a_minifier_s_directory_is_its_launcher_s_graph_and_has_its_recorded_inputs_beside_it(tmp_path):
    root = tmp_path / "minifier"
    write(root / "minifier_launcher.py", AOT)
    write(root / "checkpoints" / "12.py", RUN.replace("aten.cos", "aten.sin"))
    write(root / "checkpoints" / "storages" / "7f2c", "")
    found = taken(root, tmp_path)
    assert found.text is not None
    assert "aten.cos" in found.text
    assert f"save_dir={str(root.resolve() / 'checkpoints')!r}" in found.text
    assert found.read == (root.resolve() / "checkpoints",)
    (tmp_path / "scratch").rmdir()
    # the directory that it leaves where only that was sent
    found = taken(root / "checkpoints", tmp_path)
    assert found.text is not None
    assert "aten.sin" in found.text


def test_a_directory_without_anything_of_pytorchs(tmp_path):
    write(tmp_path / "x" / "train.py", "import torch\n")
    with pytest.raises(NotUnderstood, match=r"a directory without a structured log .*\.py"):
        taken(tmp_path / "x", tmp_path)


def test_links_are_not_followed(tmp_path):
    write(tmp_path / "secret" / "t.log", graph(0, text=RUN))
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "t.log").symlink_to(tmp_path / "secret" / "t.log")
    with pytest.raises(NotUnderstood):
        taken(tmp_path / "x", tmp_path)


def zipped(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files.items():
            out.writestr(name, content)
    return path


def tarred(path: Path, *members: tuple[str, bytes, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as out:
        for name, content, kind in members:
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(content), kind, "/etc/passwd"
            out.addfile(info, io.BytesIO(content))
    return path


LOG = (graph(0, text=RUN) + end(0, failed=("E", "x"))).encode()


def test_archives_of_logs(tmp_path):
    assert "0/0" not in taken(zipped(tmp_path / "a.zip", **{"logs/t.log": LOG}), tmp_path).notes
    found = take(Place(tarred(tmp_path / "b.tar.gz", ("./logs/t.log", LOG, tarfile.REGTYPE)), _new(tmp_path / "s2"), torch="2.13.0+cpu"))
    assert found.detail == "a trace, in an archive, dumped by torch 2.13.0+cpu, one graph: E: x, 1 ops"


def _new(path: Path) -> Path:
    path.mkdir()
    return path


def test_what_failed_is_taken_before_what_else_was_dumped(tmp_path):
    """TORCH_COMPILE_DEBUG and the minifier write below one directory; what the minifier asks on its way lies there, too."""
    run = tmp_path / "torch_compile_debug" / "run_2026_11_24_16_00_00_000000-pid_4711"
    write(run / "torchinductor" / "model__0.0" / "fx_graph_runnable.py", RUN)
    write(run / "torchinductor" / "model__0.0" / "output_code.py", "")
    write(run / "minifier" / "minifier_launcher.py", AOT)
    write(tmp_path / "isolate" / "ab12c.py", RUN)
    write(tmp_path / "repro.py", RUN)
    held = folder.read(tmp_path)
    assert [(graph.name, graph.said) for graph in held.graphs] == [
        ("minifier/minifier_launcher", "failed"), ("model__0.0", "has its code"), ("repro", "failed"),
    ]  # fmt: skip
    detail = taken(tmp_path, tmp_path).detail
    assert "3 graphs: minifier/minifier_launcher failed (dumped for PyTorch's minifier)" in detail
    assert [graph.name for graph in folder.read(tmp_path / "isolate").graphs]


def test_an_archive_without_a_graph_is_called_one(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as out:
        out.writestr("notes.md", "x")
    (tmp_path / "scratch").mkdir()
    with pytest.raises(NotUnderstood, match=r"^an archive of a directory without a structured log .*\(it holds files with: \.md\)"):
        take(Place(tmp_path / "x.zip", tmp_path / "scratch"))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_an_archive_that_was_cut_off_is_said_to_be_damaged(tmp_path, share):
    whole = tarred(tmp_path / "whole.tar.gz", ("t.log", os.urandom(2000), tarfile.REGTYPE)).read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: int(len(whole) * share)])
    (tmp_path / "tiny.tar.gz").write_bytes(whole[:40])
    for name in ("cut.tar.gz", "tiny.tar.gz"):
        into = tmp_path / f"{name}-into"
        into.mkdir()
        with pytest.raises(NotUnderstood, match="an archive that cannot be unpacked"):
            take(Place(tmp_path / name, into))


def test_a_directory_of_very_many_files_is_not_walked_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "MOST_FILES", 3)
    for number in range(5):
        write(tmp_path / "x" / f"{number}.txt", "")
    with pytest.raises(NotUnderstood, match="more than 3 files"):
        folder.read(tmp_path / "x")
