"""Probe: what a back end holds of a schema, found by trying instances of it on the real matcher."""
