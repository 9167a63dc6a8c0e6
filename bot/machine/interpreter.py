"""What an interpreter says about itself and its torch."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence

# Runs a command with a limit in seconds. Packages of the interpreter may run a stranger's code then.
RunCommand = Callable[[Sequence[str], float], "subprocess.CompletedProcess[str]"]

# Seconds for an interpreter to say what it has.
LIMIT = 120.0
# Run in the user's interpreter, which may not be ours.
_ASK = """
import json, sys, sysconfig, os, warnings
found = {"python": sys.version.split()[0]}
try:
    import torch
    found["torch"] = str(torch.__version__)
    found["cuda"] = torch.version.cuda
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        there = torch.cuda.is_available()
    found["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if there else []
    if told and not there:
        found["warned"] = str(told[-1].message)
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        found["visible"] = os.environ["CUDA_VISIBLE_DEVICES"]
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
try:
    import triton
    found["triton"] = triton.__version__
except Exception:
    pass
found["headers"] = os.path.exists(os.path.join(sysconfig.get_path("include") or "", "Python.h"))
print(json.dumps(found))
"""


def facts_of(python: str, limit: float, ask: RunCommand) -> dict[str, object]:
    """What the interpreter `python` says about itself and its torch; `error` if it cannot, or not within `limit` seconds. `ask` runs a
    command with a limit in seconds."""
    try:
        run = ask([python, "-c", _ASK], limit)
        found = json.loads(run.stdout) if run.returncode == 0 else {"error": _refusal(run.stderr, python)}
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return {"error": str(error)}
    return found if isinstance(found, dict) else {"error": f"{python} is no Python"}


def _refusal(stderr: str, python: str) -> str:
    """The last thing that `python` wrote to `stderr`. A program that only repeats its arguments is no Python."""
    last = stderr.strip().rpartition("\n")[2]
    return f"{python} is no Python" if "json.dumps" in last else last[-300:]
