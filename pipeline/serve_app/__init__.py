"""The online endpoint: documents over HTTP through the same `extract` that jobs use.

    request ──▶ gate (web_gate.py): token, size, time; before anything of the body is kept
            ──▶ route (web.py): JSON in, one shape out, a disconnect cancels
            ──▶ Service (service.py): plan, a place (admission.py), `flow.extract`, an HTTP code (answers.py)
    inline schemas ──▶ InlineSchemas (inline.py): the sandbox, bounded, apart from the registered ones

Nothing here knows Ray: whoever serves it builds a Service with an engine. docs/online.md is for callers.
"""
