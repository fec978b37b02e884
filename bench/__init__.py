"""Benchmarks: what Gristmill costs beside the model. See README.md for what is measured against what.

Run from the root of the checkout: `python -m bench.overhead`, `python -m bench.cpu_side`.
"""
