"""Submitting jobs to a cluster: what is sent, under which id, how it is followed, how it ended. Ray's job server does
the rest (`ray_jobs.py`)."""
