"""What keeps a run going: who has what open, who died, what to stop; one control a job."""
