"""Which environment variables are settings of the compiler. Does not need torch, so that both sides of the pipe can use it.

A repro has to contain its settings itself: whoever runs it does not have its author's environment. So they are removed from the processes
that judge one. Variables of a machine or of a run (caches, threads, logs, debug dumps) are not settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_COMPILERS = re.compile(r"(?:TORCHINDUCTOR|TORCHDYNAMO|TORCH_DYNAMO|TORCH_COMPILE|AOT_INDUCTOR)_")
# Words in a variable's name. Some settings mention a cache too, but do not end in it.
_OF_A_RUN = re.compile(
    r"_(?:"
    r"(?:CACHES?|CACHE_(?:DIR|DEFAULT|WRITE)|COMPILE_THREADS|VEC_ISA_OK|VERBOSE|SAVE_ARGS|JOB_ID|GRAPH_FORMAT|METRIC_TABLES)$"
    r"|(?:\w+_)?(?:WORKER|DEBUG|REPRO|REPLAY|DUMP|TRACE|LOG|LOGS|LOGGING|LOGPATH|PROFILE|PROFILER|PROFILING|CPROFILE|REDIS|TIMEOUT)(?:_|$)"
    r")"
)


def is_setting(name: str) -> bool:
    """Whether a variable called `name` affects what the compiler does with a program."""
    return bool(_COMPILERS.match(name)) and not _OF_A_RUN.search(name)


def settings_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings in the environment `environ`, by name."""
    return {name: environ[name] for name in sorted(environ) if is_setting(name)}


def without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment `environ` without the settings."""
    return {name: value for name, value in environ.items() if not is_setting(name)}
