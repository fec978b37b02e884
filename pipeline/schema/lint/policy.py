"""The thresholds and word lists of the lint, in one place. Judgement, not measurement: where no source is named, the
number is one that a reader of extraction schemas would already call large.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_FINDINGS = 100
"""Findings of one schema that are returned; the rest is only counted."""
MAX_NAMES_SHOWN = 8
MAX_TEXT_SHOWN = 60

MAX_NESTING = 5
"""Objects and arrays inside each other, the root counted."""
MAX_OPTIONAL = 8
MAX_PROPERTIES = 40
MAX_FREE_SHARE = 0.6
MIN_LEAVES_FOR_SHARE = 4
MAX_ENUM = 200
MAX_NAME = 64

LARGE = {
    "minItems": 64,
    "maxItems": 2_000,
    "minLength": 1_000,
    "maxLength": 20_000,
    "minProperties": 64,
    "maxProperties": 2_000,
    "minContains": 64,
    "maxContains": 2_000,
}
"""Above this a count is large: `minItems: 1000, maxItems: 100000` makes llguidance's matcher fail without a word."""
LARGE_REPEAT = 1_000
"""The same for `{n,m}` in a pattern."""
SAFE_INTEGER = 2**53

MAX_VALUES_CHECKED = 500
"""Enum members, defaults and examples of one schema that are run through the validator."""
MAX_VALUE_CHARS = 1_000
MAX_RISKY_CHARS = 16
"""The same where a pattern of the schema is not surely harmless."""
MAX_PATTERN_STEPS = 1_000_000
"""Estimated steps of one pattern on one value above which the value is not checked."""
MAX_PATTERN = 2_000
"""Characters of a pattern that are analysed; longer ones only count as long."""
MAX_VARIANTS = 40_000
"""Spellings compared per object when names one letter apart are looked for."""

MIN_WORD_FOR_TYPO = 7

LABEL_WORDS = frozenset({"label", "category", "decision", "score", "answer", "verdict", "classification", "rating"})
REASON_WORDS = frozenset({"reason", "reasoning", "rationale", "explanation", "evidence", "thoughts", "justification"})

NUMBER_WORDS = frozenset({"total", "subtotal", "amount", "price", "quantity", "qty", "count", "percentage", "percent"})
NOT_A_NUMBER = _words(
    "id code type currency unit units name text label description format formatted raw display words note notes key "
    "field"
)
DATE_WORDS = frozenset({"date", "datetime", "timestamp", "birthday", "birthdate"})
NOT_A_DATE = _words("format type field key name label text range raw display pattern")
CODE_WORDS = _words(
    "id code zip zipcode postal postcode phone tel telephone fax mobile isbn issn ean upc gtin sku iban bic ssn vat "
    "account serial number no nr num reference ref pin version ver release port key"
)
"""Digits that are a name, not a quantity: leading zeros count."""

UNKNOWN_WORDS = _words(
    "unknown none na other unspecified missing undetermined unclear undefined unavailable notapplicable notavailable "
    "notstated notspecified notfound notgiven notknown nodata cannotdetermine unsure uncertain indeterminate"
)
UNCLEAR_NAMES = _words(
    "val value data info num no nr type kind flag code str tmp misc item obj ref src dst cat pos cnt amt qty val1 val2 "
    "field attr prop param"
)
"""Names that say little; names of one or two letters are added to these, with the exceptions below."""
CLEAR_SHORT_NAMES = frozenset({"id", "x", "y", "z", "to", "cc", "bp", "ip", "os", "url"})

VOLATILE = (
    ("a UUID", re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)),
    ("a point in time", re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?", re.I)),
    ("a hash", re.compile(r"(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})", re.I)),
    (
        "a URL with an identifier",
        re.compile(r"https?://\S{1,300}?[/=](?:\d{5,}|[0-9a-f]{24,}|[0-9a-f-]{36})(?:\W.*)?", re.I),
    ),
)
"""Texts, matched whole, that change from one request to the next."""
IDENTIFIER = re.compile(r"[A-Za-z]{0,12}[-_:/]?[A-Za-z0-9]{0,12}[-_:/]?\d{4,}")
"""What a constant of a property called `…_id` must look like to be an identifier of one document."""

SAYS_OPTIONAL = re.compile(
    r"\b(?:or|else|otherwise) (?:null|none|empty)\b|\b(?:null|none|empty|omit(?:ted)?|blank) (?:if|when|unless)\b"
    r"|\bif (?:present|available|any|known|applicable|stated|given|mentioned)\b|^\(?optional\b",
    re.I,
)
SAYS_BOUND = re.compile(
    r"\b(?:max(?:imum)?(?: of)?|at most|up to|no more than|not more than)[ :]{0,2}(\d{1,6}) "
    r"(characters|chars|items|entries|elements)\b",
    re.I,
)
SAYS_ENUM = re.compile(
    r"(?<!exactly )(?<!least )(?<!most )\bone of(?: the following(?: values)?)?\s{0,2}(?:[:\"'`(\[]|\S{1,30}, \S)", re.I
)
SAYS_LIST = re.compile(r"\b(?:comma|semicolon|pipe)[ -](?:separated|delimited)\b|\bseparated by commas\b", re.I)
SAYS_DAY = re.compile(r"\b(?:YYYY-MM-DD|ISO[ -]?8601)\b", re.I)
