"""Where a job touches the world: input files, Ray, output files."""
