"""From one `schema.json` to everything derived from it: constraint, validator, prompt parts, Arrow columns."""
