"""Settings that hold for all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# On a busy machine a slow example is no fault; on CI the same examples are drawn each time.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
