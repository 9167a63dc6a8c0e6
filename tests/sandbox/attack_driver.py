"""Starts one program in a sandbox, as the engine does, and prints what became of it: JSON in as the first argument, JSON out.

Needs the standard library alone, so that another account can run it under the system's interpreter. `root` is a copy of the package.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ORDER = json.loads(sys.argv[1])
sys.path.insert(0, ORDER["root"])

from bot.sandbox import accounts, sandbox  # noqa: E402


def main() -> None:
    accounts.keep_to_this_process()
    for name, value in ORDER.get("set", {}).items():
        setattr(sandbox, name, value)
    if ORDER.get("gpu"):
        # what is opened for CUDA's driver is open to a program too
        sandbox.paths.GPUS = ("/dev/null",)
    if "optional" in ORDER:
        sandbox.paths.optional_packages.__defaults__ = (ORDER["optional"],)
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile() as out:
        box = sandbox.Sandbox(
            Path(scratch),
            ORDER.get("python", sys.executable),
            [Path(path) for path in ORDER.get("readable", ())],
            ORDER.get("network", False),
        )
        python = ORDER.get("python", sys.executable)
        process = box.start(
            [python, "-I", "-c", ORDER["code"], *ORDER.get("argv", ())],
            cwd=Path(ORDER.get("cwd", "/")),
            env=os.environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        if ORDER.get("say_started"):
            print("started", flush=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ORDER.get("limit", 20.0))
        began = time.monotonic()
        process.end()
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
        said = {"status": process.returncode, "text": text, "ended": process.report.ended, "failed": process.report.failed}
        print(json.dumps({**said, "layers": box.layers, "ending": time.monotonic() - began, "left": os.listdir(scratch)}))


main()
