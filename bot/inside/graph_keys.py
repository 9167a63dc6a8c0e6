"""The keys of torch's caches of compiled graphs: made in our processes as in the user's, where those caches are on.

In ours they keep nothing and know nothing, so that no hit hides a failure. But a key is made with the program's own help: each of its
passes is asked for its `uuid`, and what fails there fails for everybody. A candidate that nobody asks may lose it unseen.
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
    """Have Inductor make the key of each graph that it compiles in this process, and then go on as without a cache.

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
        # what a key is made of; the hash itself is most of the cost, and nobody looks it up
        details(*given)
        return "", []

    @functools.wraps(make)
    def prepare_key(*args: Any, **kwargs: Any) -> tuple[None, dict[str, Any]]:
        make(*args, **kwargs)
        return None, {"cache_state": "bypass", "cache_bypass_reason": "nothing is kept", "cache_event_time": time.time_ns()}

    codecache.torch_key()  # of all that torch is made of: remembered, a third of a second in each child otherwise
    codecache.compiled_fx_graph_hash = gathered
    cache.prepare_key = staticmethod(prepare_key)
    environment.leave_to_children(_SWITCH, config)
