"""Real processes killed at random moments, and what is left of a job afterwards: `python -m bench.chaos`."""
