"""What `bench.schema_coverage` is made of: `sets` reads, `jobs` measure in the sandbox, `measure` asks them for one
schema, `totals` adds up, `tables` shows.
"""
