"""Checks that schemas and jobs declare beside rules: order, repetition, lookups, language. Of `rules`."""
