"""The engines some pages need."""

from tests.engines.conftest import postgres, spark  # noqa: F401
