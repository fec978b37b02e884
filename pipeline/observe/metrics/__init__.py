"""Metrics: a run's or an endpoint's counts under stable names with bounded labels. Nothing here changes an outcome."""
