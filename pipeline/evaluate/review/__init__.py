"""Review: documents of a run that a person corrects, and sets of documents that are replayed without a model."""
