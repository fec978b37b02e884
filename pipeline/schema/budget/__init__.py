"""Budget: how many tokens the records of a schema take, before any model runs.

`measure.budget` counts with the model's tokenizer, `judge.judge` compares with a job's max_tokens and context.
"""
