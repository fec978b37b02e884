"""Probe: what a back end holds of a schema, found with instances of it and the real matcher instead of by reading docs."""
