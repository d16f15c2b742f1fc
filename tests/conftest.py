"""Settings for all tests."""

from hypothesis import settings

# The same examples on every run: a failure is a bug, never the weather.
settings.register_profile("rejoinder", derandomize=True, deadline=None, database=None)
settings.load_profile("rejoinder")
