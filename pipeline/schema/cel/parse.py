"""CEL by recursive descent: text in, syntax tree out (grammar of cel-spec, langdef.md)."""

from __future__ import annotations

from pipeline.schema.cel.syntax import (
    RESERVED,
    Call,
    CelSyntaxError,
    Index,
    ListOf,
    Literal,
    Macro,
    MapOf,
    Name,
    Node,
    Select,
    Token,
    tokens,
)

MAX_DEPTH = 40
"""Levels of a syntax tree, so that neither reading nor evaluating exhausts the stack."""

MACROS = {"all": (2,), "exists": (2,), "exists_one": (2,), "existsOne": (2,), "filter": (2,), "map": (2, 3)}
"""Name → numbers of arguments, the variable among them."""

_LEVELS = (("||",), ("&&",), ("<", "<=", ">=", ">", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))
_CONSTANTS = {"true": True, "false": False, "null": None}


def parse(text: str) -> Node:
    """The syntax tree of a rule.

    Raises:
        CelSyntaxError: it is not CEL, or nests deeper than MAX_DEPTH.
    """
    try:
        return _Parser(text).whole()
    except RecursionError as error:
        raise CelSyntaxError(f"it nests more than {MAX_DEPTH} levels deep") from error


class _Parser:
    """Reads one rule from left to right; `_at` is the next token."""

    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        tree = self._expression()
        if self._next.kind != "end":
            raise self._fault("an operator or the end")
        return tree

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _fault(self, wanted: str) -> CelSyntaxError:
        found = "the end" if self._next.kind == "end" else repr(self._next.value)
        return CelSyntaxError(f"character {self._next.at + 1}: {wanted} should stand here, not {found}")

    def _take(self, *operators: str) -> str:
        """The next token if it is one of these operators, else an empty string."""
        token = self._next
        if token.kind in ("operator", "name") and token.value in operators:
            self._at += 1
            return str(token.value)
        return ""

    def _demand(self, operator: str) -> None:
        if not self._take(operator):
            raise self._fault(repr(operator))

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CelSyntaxError(f"it nests more than {MAX_DEPTH} levels deep")
        condition = self._binary(0)
        if self._take("?"):
            first = self._binary(0)
            self._demand(":")
            condition = Call("?:", None, (condition, first, self._expression()))
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        chained = [left]
        while operator := self._take(*_LEVELS[level]):
            right = self._binary(level + 1)
            chained.append(right)
            if level > 1:
                left = Call(operator, None, (left, right))
        return Call(_LEVELS[level][0], None, tuple(chained)) if level <= 1 and len(chained) > 1 else left

    def _unary(self) -> Node:
        signs: list[str] = []
        while sign := self._take("!", "-"):
            if signs and signs[-1] != sign:
                raise self._fault("an operand")
            signs.append(sign)
        operand = self._member()
        if len(signs) > MAX_DEPTH:
            raise CelSyntaxError(f"it nests more than {MAX_DEPTH} levels deep")
        for sign in signs:
            operand = Call(f"unary {sign}", None, (operand,))
        return operand

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if self._take("."):
                optional = bool(self._take("?"))
                name = self._field()
                node = self._called(name, node) if not optional and self._take("(") else Select(node, name, optional)
            elif self._take("["):
                optional = bool(self._take("?"))
                node = Index(node, self._expression(), optional)
                self._demand("]")
            else:
                return node

    def _name(self) -> str:
        token = self._next
        if token.kind != "name" or token.value in _CONSTANTS or token.value == "in":
            raise self._fault("a name")
        self._at += 1
        return str(token.value)

    def _field(self) -> str:
        if self._next.kind != "quoted":
            return self._name()
        self._at += 1
        return str(self._tokens[self._at - 1].value)

    def _primary(self) -> Node:
        token = self._next
        if token.kind in ("number", "string"):
            self._at += 1
            return Literal(token.value)
        if token.kind == "name" and token.value in _CONSTANTS:
            self._at += 1
            return Literal(_CONSTANTS[token.value])
        if self._take("("):
            inner = self._expression()
            self._demand(")")
            return inner
        if self._take("["):
            return ListOf(self._listed("]"))
        if self._take("{"):
            return self._map()
        name = self._name()
        if name in RESERVED:
            raise CelSyntaxError(f"character {token.at + 1}: {name!r} is a reserved word")
        return self._called(name, None) if self._take("(") else Name(name)

    def _listed(self, closer: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._take(closer):
            items.append(self._expression())
            if not self._take(","):
                self._demand(closer)
                break
        return tuple(items)

    def _map(self) -> MapOf:
        pairs: list[tuple[Node, Node]] = []
        while not self._take("}"):
            key = self._expression()
            self._demand(":")
            pairs.append((key, self._expression()))
            if not self._take(","):
                self._demand("}")
                break
        return MapOf(tuple(pairs))

    def _called(self, name: str, target: Node | None) -> Node:
        args = self._listed(")")
        if target is None and name == "has":
            if len(args) != 1 or not isinstance(args[0], Select):
                raise CelSyntaxError("has() takes one field, as in has(self.tax)")
            return Call("has", None, args)
        if target is not None and name in MACROS and len(args) in MACROS[name]:
            if not isinstance(args[0], Name):
                raise CelSyntaxError(f"{name}() takes a variable first, as in self.items.{name}(item, …)")
            return Macro(name.replace("existsOne", "exists_one"), target, args[0].name, args[1:])
        return Call(name, target, args)
