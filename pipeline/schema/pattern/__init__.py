"""ECMA 262 regular expressions, the dialect of `pattern`: read, bounded in length, drawn from, emitted."""
