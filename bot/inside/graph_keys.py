"""Makes the keys of torch's caches of compiled graphs in our processes as in the user's, where these caches are enabled.

In ours the caches store nothing and find nothing, so that no hit hides a failure. But making a key involves the program: each of its
passes is asked for its `uuid`, and a failure there happens to everybody. A candidate could lose that unnoticed if it were never asked.
"""

from __future__ import annotations

import functools
import importlib
import time
from typing import Any

from . import environment
from .shortcuts import function_at

_SWITCH = "TORCHINDUCTOR_FX_GRAPH_CACHE"


def make_keys() -> None:
    """Make Inductor compute the key of each graph that it compiles in this process, and then continue as without a cache.

    Raises:
        AttributeError: this torch makes its keys in another way.
        ImportError: likewise.
    """
    codecache: Any = importlib.import_module("torch._inductor.codecache")
    config: Any = importlib.import_module("torch._inductor.config")
    cache = codecache.FxGraphCache
    make = function_at(cache, "prepare_key", "gm", "example_inputs", "fx_kwargs", "inputs_to_check")
    function_at(codecache, "compiled_fx_graph_hash", "gm", "example_inputs", "fx_kwargs", "inputs_to_check")
    details = codecache.FxGraphHashDetails

    def gathered(*given: Any) -> tuple[str, list[str]]:
        # what a key is made from; the hash itself is most of the cost, and nothing looks it up
        details(*given)
        return "", []

    @functools.wraps(make)
    def prepare_key(*args: Any, **kwargs: Any) -> tuple[None, dict[str, Any]]:
        make(*args, **kwargs)
        return None, {"cache_state": "bypass", "cache_bypass_reason": "nothing is kept", "cache_event_time": time.time_ns()}

    codecache.torch_key()  # covers all of torch: computed once here, since it would take a third of a second in each child
    codecache.compiled_fx_graph_hash = gathered
    cache.prepare_key = staticmethod(prepare_key)
    environment.leave_to_children(_SWITCH, config)
