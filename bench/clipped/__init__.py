"""What the constraint takes from the model, by field of the demo's schemas, and what changes it."""
