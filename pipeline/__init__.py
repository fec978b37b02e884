"""Gristmill: offline, distributed, schema-constrained extraction."""

__version__ = "0.1.0"
