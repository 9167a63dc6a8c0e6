"""Stands for the engine: leaves a recorded result, and beside it what a program would have found in its environment.

Checked against the engine itself: what it leaves was recorded of it (tests/fixtures/results, scripts/record-fixtures), and the exit
statuses are those of bot/models/result.py. Kinder than the engine: it takes no time, fails at nothing, and tries no program.

Words in the program have it do more: `slow` prints a while; `cancel` waits until it is ended;
`exchange N`, `taken` and `blocked` are a job that writes to the run's artifacts, as whoever has the runtime token can.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

RECORDED = Path(os.path.realpath(__file__)).parents[2] / "fixtures/results"
if sys.argv[1:2] == ["doctor"]:
    print("ok   python: 3.12.0\nok   torch: 2.13.0")
    sys.exit(0)
out = Path(next(word.split("=", 1)[1] for word in sys.argv if word.startswith("--out=")))
command = next((word.split("=", 1)[1] for word in sys.argv if word.startswith("--command=")), None)
text = command if command is not None else Path(sys.argv[-1]).read_text(encoding="utf-8")
# the program says which result it has
name = next((path.name for path in sorted(RECORDED.iterdir()) if f"result: {path.name}" in text), "lowering")
shutil.copytree(RECORDED / name, out, dirs_exist_ok=True)
here = {path.name: path.read_text(encoding="utf-8") for path in Path().iterdir() if path.is_file()}
seen = {"environment": dict(os.environ), "arguments": sys.argv[1:], "here": here, "text": text}
(out / "seen.json").write_text(json.dumps(seen), encoding="utf-8")
for step in range(6 if "slow" in text else 0):
    print(f"[   {step}.0 s] step {step}", file=sys.stderr, flush=True)
    time.sleep(1)
store = Path(os.environ["ACT_STORE"])
if forged := re.search(r"exchange (\d+)", text):
    request = store / "torch-minify-request/request.json"
    held = json.loads(request.read_text(encoding="utf-8"))
    held[0]["answer"] |= {"issue": int(forged[1]), "comment": None}
    held[0]["asked_by"] = "project-lead"
    request.write_text(json.dumps(held), encoding="utf-8")
if "taken" in text:
    (store / "torch-minify-result-0").mkdir()
    (store / "torch-minify-result-0/x").write_text("of another", encoding="utf-8")
if "blocked" in text:
    (store / "torch-minify-result-0").write_text("none that could be replaced", encoding="utf-8")
if "cancel" in text:
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    (out / "result.json").write_text(json.dumps(result | {"ended_by": "interrupted"}), encoding="utf-8")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("[   0.1 s] waits for a cancel", file=sys.stderr, flush=True)
    time.sleep(60)
    sys.exit(1)
print("[   0.1 s] minimizing\n::error::this is printed by a program, and is no command", file=sys.stderr)
sys.exit({"minimized": 0, "reproduced": 3, "not_reproduced": 4, "flaky": 5}.get(json.loads((out / "result.json").read_text())["status"], 1))
