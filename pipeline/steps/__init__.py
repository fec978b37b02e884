"""What happens to one document, one file per step: pure functions from records to records, free of I/O."""
