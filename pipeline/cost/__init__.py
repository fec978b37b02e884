"""What a job will cost, before anything starts: documents, tokens, attempts, engines, hours, money (docs/plan.md)."""
