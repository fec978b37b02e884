"""What a run writes: rows, files, commit records, the manifest; and how it is found again."""
