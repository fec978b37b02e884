"""What a schema means, apart from how it is written: shapes of values, read from a source, emitted for a back end."""
