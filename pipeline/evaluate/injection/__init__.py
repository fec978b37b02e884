"""Injection: instructions planted in documents, and how often a record follows them."""
