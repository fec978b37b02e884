"""Where a document supports a value, in whatever notation. Of `ground`."""
