"""Policy of the budget: what is assumed, and how much may be counted before a cheaper bound has to do."""

END_TOKENS = 1
"""The end of the turn: an answer is whole only when the model wrote it, and it counts as output."""

HEADROOM = 2
"""`recommended_tokens` is this many times the P99: an answer that is cut off costs a document, room costs little."""

NUMBER_CHARACTERS = 25
"""Longest spelling of a number that is expected where bounds do not rule it: a sign, 17 digits, a point, leading zeros.
JSON itself has no limit; in plain decimals a double can take over 300."""

CODE_POINT_BYTES = 6
"""Most bytes of one character in canonical text: a control character is `\\u0001`."""

JOINT = 1
"""Tokens added to every fixed text (key, constant) that is counted by itself: between its neighbours the tokenizer may
cut it in another place. In English JSON the joints save tokens; see docs/budget.md."""

LARGEST = 10**15
"""A bound above is as good as none."""

MAX_SAMPLES = 500
"""Sample records that are counted, evenly spread over those given."""

MAX_DRAWN = 100
"""Records that are drawn where none are given."""

MAX_DRAWN_CHARACTERS = 20_000
"""None are drawn where the smallest record has more."""

DRAWING_SECONDS = 4.0
"""For drawing and judging them; patterns can be slow."""

MAX_SHORTEST = 200_000
"""Characters of a smallest record; there is no budget for a schema whose records must be larger."""

MAX_MEMBERS = 16
"""Constants or options of one place that are counted in search of the fewest or the most tokens."""

MAX_FILLED = 2000
"""Characters of a string of a least length for which different fillings are counted."""

MAX_POINTERS_SHOWN = 3
