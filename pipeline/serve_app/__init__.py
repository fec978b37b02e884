"""An application of Ray Serve: documents over HTTP through the same `extract` that jobs use, and a pool of engines.

    request ──▶ gate (web_gate.py): token, size, time; before anything of the body is kept
            ──▶ route (web.py): JSON in, one shape out, a disconnect cancels
            ──▶ Service (service.py): plan, a place (admission.py), `flow.extract`, an HTTP code (answers.py)
    inline schemas ──▶ InlineSchemas (inline.py): the sandbox, bounded, apart from the registered ones

None of that knows Ray. `app.py` makes an application of it: endpoint.py before a pool of engines, engine.py.
"""
