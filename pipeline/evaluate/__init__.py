"""What a run is worth: its records against known right answers, and against another run's."""
