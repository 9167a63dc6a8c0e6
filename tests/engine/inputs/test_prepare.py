from __future__ import annotations

from bot.engine.inputs import prepare
from tests.engine.inputs.test_dump import AOT
from tests.engine.inputs.test_take import named


def test_a_script_runs_where_it_is_and_what_is_made_of_a_dump_in_a_place_of_its_own(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    script = named(tmp_path, "fail.py", "import torch\n")
    target, found = prepare.prepared(script, ("--x",), "no-such-python", scratch, None, None)
    assert (target.script, target.argv, found.taken_as) == (script, ("--x",), "script")
    (scratch / "unpacked").rmdir()
    dumped = named(tmp_path, "fx graph 1.py", AOT)
    target, found = prepare.prepared(dumped, (), "no-such-python", scratch, None, None)
    assert target.script == scratch / "fx_graph_1.py"
    assert target.script.read_text() == found.text
    assert target.script.stat().st_mode & 0o777 == 0o644
    assert scratch.stat().st_mode & 0o777 == 0o755
