"""Stands for the engine: leaves a recorded result, and beside it what a program would have found in its environment."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

RECORDED = Path(os.path.realpath(__file__)).parents[2] / "fixtures/results"
out = Path(next(word.split("=", 1)[1] for word in sys.argv if word.startswith("--out=")))
command = next((word.split("=", 1)[1] for word in sys.argv if word.startswith("--command=")), None)
text = command if command is not None else Path(sys.argv[-1]).read_text(encoding="utf-8")
# the program says which result it has
name = next((path.name for path in sorted(RECORDED.iterdir()) if f"result: {path.name}" in text), "lowering")
shutil.copytree(RECORDED / name, out, dirs_exist_ok=True)
here = {path.name: path.read_text(encoding="utf-8") for path in Path().iterdir()}
seen = {"environment": dict(os.environ), "arguments": sys.argv[1:], "here": here, "text": text}
(out / "seen.json").write_text(json.dumps(seen), encoding="utf-8")
for step in range(6 if "slow" in text else 0):
    print(f"[   {step}.0 s] step {step}", file=sys.stderr, flush=True)
    time.sleep(1)
print("[   0.1 s] minimizing\n::error::this is printed by a program, and is no command", file=sys.stderr)
sys.exit({"minimized": 0, "reproduced": 3, "not_reproduced": 4, "flaky": 5}.get(json.loads((out / "result.json").read_text())["status"], 1))
