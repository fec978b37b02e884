"""The report of a run: one page that needs nothing else. `build.py` is where it begins."""
