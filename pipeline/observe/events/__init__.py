"""Events: what is notable in a run, one JSON line each, for machines that gather logs. Quiet unless the job asks.

    outcome, engine, run ─▶ Log.write ─▶ queue ─▶ thread: hook ─▶ patterns ─▶ cut ─▶ a file of this process, in segments

Nothing here waits for a disk, raises, or changes what becomes of a document: what cannot be written is counted.
"""
