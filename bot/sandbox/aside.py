"""Looking at what a program will run in: its interpreter, its compiler, its driver's tool. What these run may be a stranger's work too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from bot.sandbox import accounts, environment, paths
from bot.sandbox.order import Order
from bot.sandbox.process import launch


def ask(words: Sequence[str], limit: float, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What the command `words` says, which has `limit` seconds, and what a program may see of the environment `env` (None: ours).

    It can write nothing and reach nobody, and runs in no directory of anybody's, whose modules it would import. It has an account of its
    own where we may give one; where that comes to nothing, as where others cannot reach the interpreter, it has ours, without its rights.

    Raises:
        OSError: there is no such program.
        subprocess.TimeoutExpired: it took longer.
    """
    env = os.environ if env is None else env
    if sys.platform != "linux":
        return subprocess.run(words, cwd="/", env=env, capture_output=True, text=True, timeout=limit, check=False, errors="replace")
    program = shutil.which(words[0], path=env.get("PATH"))
    if program is None:
        raise FileNotFoundError(2, "No such file or directory", words[0])
    devices = paths.devices()
    order = Order(
        (os.path.abspath(program), *words[1:]),
        {**environment.allowed(env), "HOME": os.path.expanduser("~")},
        "/",
        groups=accounts.groups_of_gpus(devices),
        read=("/",),
        write=tuple(devices),
        gpu=paths.has_gpu(),
    )
    number = accounts.draw(os.environ) if accounts.may_change() else None
    asked = [order] if number is None else [order._replace(uid=number, gid=number), order._replace(groups=())]
    for one in asked:
        done, failed = _run(one, limit)
        if done.returncode == 0:
            break
    if failed:
        raise OSError(8, failed)
    return done


def _run(order: Order, limit: float) -> tuple[subprocess.CompletedProcess[str], str]:
    """What came of the `order`, and why it was not started."""
    process = launch(order, None, {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE})
    try:
        said, wrong = process.communicate(timeout=limit)
    finally:
        process.end()
    texts = (text.decode("utf-8", "replace") for text in (said, wrong))
    return subprocess.CompletedProcess(list(order.command), process.returncode, *texts), process.report.failed
