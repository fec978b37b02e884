"""The systems that `bench.overhead` compares, one module each. Each runs in a process of its own for each round:
`python -m bench.systems.<name> WORKLOAD.json` prints one JSON line, a `Measured`.
"""
