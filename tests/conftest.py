"""What every test stands on: the Hypothesis profile, and `tests` as an importable folder."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

settings.register_profile(
    "radocraft",
    deadline=None,
    derandomize=True,
    max_examples=40,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("radocraft")
