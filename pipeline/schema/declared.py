"""What a subschema declares of its values beyond JSON Schema, read from its `x-` keywords.

`x-validations`, `x-language`, `x-unique-by` and `x-order` are read here, for loading and for records alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from pipeline.records import Severity
from pipeline.schema.cel import CelSyntaxError, Program, compile_rule, reads
from pipeline.schema.formats import EXACT
from pipeline.schema.pattern.search import compile_finder

MAX_RULES = 50
"""Rules of one subschema."""
MAX_POINTERS = 20
"""Pointers, or languages, of one annotation."""
MAX_MESSAGE = 300
"""Characters of a rule's message, which a model may be shown."""
MAX_POINTER = 500

_CODES = (
    "af ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gu he hi hr hu hy id is it ja ka kk ko la lg lt "
    "lv mi mk mn mr ms nb nl nn pa pl pt ro ru sk sl sn so sq sr st sv sw ta te th tl tn tr ts uk ur vi xh yo zh zu"
)
LANGUAGES = frozenset(_CODES.split())
"""The ISO 639-1 codes that lingua tells apart. `no` stands for `nb` and `nn`."""

SEVERITIES = tuple(word for word in get_args(Severity) if word)


class Malformed(ValueError):
    """An annotation that does not say what it should; the text says why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One of `x-validations`: `pointer` leads from the judged value to what its message is about, `reads` to
    what it reads of the value."""

    program: Program
    reads: frozenset[str]
    message: str
    pointer: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class Language:
    """The languages that a text may be in, as ISO 639-1 codes."""

    codes: tuple[str, ...]
    severity: Severity


@dataclass(frozen=True, slots=True)
class Unique:
    """Pointers into an item; an item is repeated if another has equal values at all of them."""

    pointers: tuple[str, ...]
    severity: Severity


@dataclass(frozen=True, slots=True)
class Order:
    """Pointers into an object, to values that must not decrease."""

    pointers: tuple[str, ...]
    severity: Severity


@dataclass(frozen=True, slots=True)
class Declared:
    """All that one subschema declares."""

    rules: tuple[Rule, ...] = ()
    language: Language | None = None
    unique: Unique | None = None
    order: Order | None = None


NOTHING = Declared()


def declared_of(node: Mapping[str, Any]) -> Declared:
    """What a subschema declares.

    Raises:
        Malformed: one of the annotations does not say what it should.
    """
    made: dict[str, Any] = {
        name: _named(keyword, read, node[keyword]) for keyword, (name, read) in _READERS.items() if keyword in node
    }
    return Declared(**made) if made else NOTHING


def pointer_of(value: Any) -> str:
    """A JSON pointer (RFC 6901), or Malformed."""
    if not isinstance(value, str) or len(value) > MAX_POINTER or not _POINTER.finds(value, 1.0):
        raise Malformed(f"{_shown(value)} is no JSON pointer, such as /total or /lines/0")
    return value


def pointers_of(value: Any) -> tuple[str, ...]:
    """A list of 1 to MAX_POINTERS different JSON pointers, or Malformed."""
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_POINTERS:
        raise Malformed(f"takes a list of 1 to {MAX_POINTERS} JSON pointers")
    pointers = tuple(map(pointer_of, value))
    if len(set(pointers)) < len(pointers):
        raise Malformed("names a pointer twice")
    return pointers


def _named(keyword: str, read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except Malformed as error:
        raise Malformed(f"{keyword}: {error}") from error


def _rules(value: Any) -> tuple[Rule, ...]:
    if not isinstance(value, list) or len(value) > MAX_RULES:
        raise Malformed(f"takes a list of at most {MAX_RULES} rules")
    return tuple(_rule(number, rule) for number, rule in enumerate(value, 1))


def _rule(number: int, value: Any) -> Rule:
    where = f"rule {number}"
    _check_keys(where, value, {"rule", "message"}, {"pointer", "severity"})
    if not isinstance(value["rule"], str) or not isinstance(value["message"], str):
        raise Malformed(f"{where}: `rule` and `message` are strings")
    if not value["message"].strip() or len(value["message"]) > MAX_MESSAGE:
        raise Malformed(f"{where}: a message has 1 to {MAX_MESSAGE} characters")
    try:
        program = compile_rule(value["rule"])
    except CelSyntaxError as error:
        raise Malformed(f"{where}: {_shown(value['rule'])} cannot be used: {error}") from error
    return Rule(
        program,
        reads(program.tree),
        value["message"],
        pointer_of(value.get("pointer", "")),
        _severity(where, value, "block"),
    )


def _language(value: Any) -> Language:
    codes, severity = value, _severity("", {}, "degrade")
    if isinstance(value, Mapping):
        _check_keys("it", value, {"languages"}, {"severity"})
        codes, severity = value["languages"], _severity("it", value, "degrade")
    codes = [codes] if isinstance(codes, str) else codes
    if not isinstance(codes, list) or not 1 <= len(codes) <= MAX_POINTERS:
        raise Malformed(f"takes an ISO 639-1 code, or a list of 1 to {MAX_POINTERS}")
    for code in codes:
        if not isinstance(code, str) or code not in LANGUAGES | {"no"}:
            raise Malformed(f"{_shown(code)} is none of the languages that can be told: {', '.join(sorted(LANGUAGES))}")
    known = dict.fromkeys(one for code in codes for one in (("nb", "nn") if code == "no" else (code,)))
    return Language(tuple(known), severity)


def _unique(value: Any) -> Unique:
    return Unique(*_listed(value))


def _order(value: Any) -> Order:
    pointers, severity = _listed(value)
    if len(pointers) < 2:
        raise Malformed("takes at least two pointers, earliest first")
    return Order(pointers, severity)


def _listed(value: Any) -> tuple[tuple[str, ...], Severity]:
    if not isinstance(value, Mapping):
        return pointers_of(value), "degrade"
    _check_keys("it", value, {"pointers"}, {"severity"})
    return pointers_of(value["pointers"]), _severity("it", value, "degrade")


def _severity(where: str, value: Mapping[str, Any], default: Severity) -> Severity:
    said = value.get("severity", default)
    if said not in SEVERITIES:
        raise Malformed(f"{where}: severity is {', '.join(SEVERITIES)}, not {_shown(said)}")
    return cast(Severity, said)


def _check_keys(where: str, value: Any, needed: set[str], allowed: set[str]) -> None:
    if not isinstance(value, Mapping):
        raise Malformed(f"{where} has to be an object with {', '.join(sorted(needed))}")
    if missing := needed - value.keys():
        raise Malformed(f"{where} lacks {', '.join(sorted(missing))}")
    if unknown := value.keys() - needed - allowed:
        raise Malformed(
            f"{where} has an unknown key {_shown(min(unknown))}; known are {', '.join(sorted(needed | allowed))}"
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


_POINTER = compile_finder(f"^(?:{EXACT['json-pointer']})$")
_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "x-validations": ("rules", _rules),
    "x-language": ("language", _language),
    "x-unique-by": ("unique", _unique),
    "x-order": ("order", _order),
}
"""Keyword → (the part of Declared, its reader)."""
