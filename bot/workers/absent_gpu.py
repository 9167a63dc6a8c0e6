"""Compiling for a GPU that isn't there: what every process of a job gets for it, and whether that is possible here."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

from bot.failure.machine_faults import last_line
from bot.inside.protocol import CUDA_ARCH, FOLLOW_DIRECTORY, INSIDE
from bot.sandbox.files import take_over
from bot.sandbox.sandbox import Sandbox
from bot.workers import environment
from bot.workers.process import Patience, Wanted, run_process

_LIMIT = 180.0  # seconds
_COMPILERS = ("cc", "gcc", "clang")
_TRIED = """
import importlib.util, sys, torch
if torch.version.cuda is None:
    sys.exit(f"torch {torch.__version__} was built without CUDA; a build for CUDA runs on any machine")
if importlib.util.find_spec("triton") is None:
    sys.exit("triton is not installed beside it")
weight = torch.ones(2, 2, device="cuda", requires_grad=True)
(weight @ weight).sum().backward()
if tuple(torch.cuda.get_device_capability()) != divmod(%d, 10):
    sys.exit("its processes see no such GPU")
"""


def put_up(box: Sandbox, python: str, arch: int, most: float = _LIMIT, wanted: Wanted = None) -> str | None:
    """Have every process of the sandbox `box` see a GPU of the compute capability `arch` (90 for 9.0). Returns what keeps the interpreter
    `python` from that, for people; None if nothing does. Each of the two processes that it takes is cut off after `most` seconds. Raises
    Interrupted if `wanted` returned False.
    """
    compiler = next((found for name in (os.environ.get("CC"), *_COMPILERS) if name and (found := shutil.which(name))), None)
    if compiler is None:
        return f"there is no C compiler ({', '.join(_COMPILERS)}), which Triton needs as well"
    place = box.scratch / "absent-gpu"
    place.mkdir(exist_ok=True)
    place.chmod(0o755)  # whatever our umask is
    library = place / "libcuda.so.1"
    words = [compiler, "-shared", "-fPIC", "-w", f"-Wl,-soname,{library.name}", str(Path(INSIDE) / "absent_gpu.c"), "-o", str(library)]
    env = environment.of_nobody(os.environ, place)
    made = run_process(words, Patience(math.inf, most), cwd=place, env=env, wanted=wanted, box=box, write=(place,))
    take_over(place)
    if made.status != "ok" or not library.is_file():
        return f"{compiler} cannot make what stands for the driver: {made.text.strip()[-300:] or made.status}"
    box.variables = {CUDA_ARCH: str(arch), "LD_PRELOAD": str(library), "PYTHONPATH": FOLLOW_DIRECTORY}
    env = environment.of_proof(os.environ, place)
    tried = run_process([python, "-c", _TRIED % arch], Patience(math.inf, most), cwd=place, env=env, wanted=wanted, box=box)
    if tried.status == "ok":
        return None
    return last_line(tried)[:300] or f"its process ended ({tried.signal or tried.status})"
