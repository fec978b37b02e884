"""How languages and countries print numbers, dates and currencies, and the letters that nobody sees.

Reading is strict: what has two readings, or one that a careful person would doubt, has none.
"""
