"""Looks at what a program will run in: its interpreter, its compiler, its driver's tool. These may run a stranger's code as well."""

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
    """What the command `words` prints within `limit` seconds. It gets what a program may see of the environment `env` (None: ours).

    It can write nothing and reach nobody, and does not run in anybody's directory, since it would import modules from there. It has its own
    account if we may give it one; if that fails, for example since others cannot reach the interpreter, it runs under ours, without its
    rights.

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
    """The result of the `order`, and why it was not started."""
    process = launch(order, None, {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE})
    try:
        said, wrong = process.communicate(timeout=limit)
    finally:
        process.end()
    texts = (text.decode("utf-8", "replace") for text in (said, wrong))
    return subprocess.CompletedProcess(list(order.command), process.returncode, *texts), process.report.failed
