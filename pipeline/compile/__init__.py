"""Compiling schemas where it can do no harm: in child processes with limits, and with verdicts kept on disk.

`sandbox` is what callers use; `zygote` and `forkserver` are the other side of its pipe; `admission` asks vLLM's own
validation; `cache` keeps verdicts.
"""
