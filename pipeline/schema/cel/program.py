"""From a syntax tree to a function: a rule is read once and judged often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.schema.cel.functions import FUNCTIONS
from pipeline.schema.cel.macros import Frame, Run, macro
from pipeline.schema.cel.operators import MATHS, OPERATORS, has_field, index, map_of, maths, select
from pipeline.schema.cel.parse import MAX_DEPTH, parse
from pipeline.schema.cel.syntax import Call, CelSyntaxError, Index, ListOf, Literal, Macro, MapOf, Name, Node, Select
from pipeline.schema.cel.text_functions import MAX_PATTERN
from pipeline.schema.cel.values import CelError, Meter, kind
from pipeline.schema.validator import PatternError, compile_pattern

MAX_RULE = 2000
"""Characters of a rule."""


@dataclass(frozen=True, slots=True)
class Program:
    """A rule that was read. `names` are the variables that it is judged with, in order."""

    text: str
    names: tuple[str, ...]
    tree: Node
    run: Run

    def holds(self, values: Sequence[Any], meter: Meter) -> bool:
        """Whether the rule is true of the values of its variables.

        Raises:
            CelError: it has no value for them, or one that is neither true nor false.
            TooCostly: the meter ran out.
        """
        try:
            result = self.run(Frame(list(values), meter))
        except CelError:
            raise
        except (ArithmeticError, ValueError, TypeError, LookupError, RecursionError, MemoryError) as error:
            raise CelError(f"it failed: {type(error).__name__}") from error
        if not isinstance(result, bool):
            raise CelError(f"it gives {kind(result)}, neither true nor false")
        return result


def compile_rule(text: str, names: Sequence[str] = ("self", "input", "params")) -> Program:
    """Read a rule.

    Raises:
        CelSyntaxError: it is longer than MAX_RULE, is not CEL, or names a variable or function that does not exist.
    """
    if len(text) > MAX_RULE:
        raise CelSyntaxError(f"it has {len(text)} characters; a rule has at most {MAX_RULE}")
    tree = parse(text)
    return Program(text, tuple(names), tree, _Builder().build(tree, {name: slot for slot, name in enumerate(names)}))


class _Builder:
    """Makes a function of each node. `slots` says where the variables in scope are kept."""

    def __init__(self) -> None:
        self._depth = 0

    def build(self, node: Node, slots: Mapping[str, int]) -> Run:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CelSyntaxError(f"it nests more than {MAX_DEPTH} levels deep")
        made = self._made(node, slots)
        self._depth -= 1
        return made

    def _made(self, node: Node, slots: Mapping[str, int]) -> Run:
        if isinstance(node, Literal):
            value = node.value
            return lambda _frame: value
        if isinstance(node, Name):
            if node.name not in slots:
                raise CelSyntaxError(f"{node.name!r} is unknown here; known are {', '.join(slots)}")
            slot = slots[node.name]
            return lambda frame: frame.slots[slot]
        if isinstance(node, Select):
            return select(self.build(node.base, slots), node.field, node.optional)
        if isinstance(node, Index):
            return index(self.build(node.base, slots), self.build(node.key, slots), node.optional)
        if isinstance(node, ListOf):
            items = [self.build(item, slots) for item in node.items]
            return lambda frame: [item(frame) for item in items]
        if isinstance(node, MapOf):
            return map_of([(self.build(key, slots), self.build(value, slots)) for key, value in node.pairs])
        if isinstance(node, Macro):
            slot = max(slots.values(), default=-1) + 1
            inner = {**slots, node.variable: slot}
            return macro(node, self.build(node.target, slots), slot, [self.build(body, inner) for body in node.bodies])
        return self._call(node, slots)

    def _call(self, node: Call, slots: Mapping[str, int]) -> Run:
        if node.function == "has":
            field = node.args[0]
            assert isinstance(field, Select)  # the parser lets nothing else pass
            return has_field(self.build(field.base, slots), field.field)
        if isinstance(node.target, Name) and node.target.name == "math" and "math" not in slots:
            node = Call(f"math.{node.function}", None, node.args)
        parts = [self.build(part, slots) for part in ([node.target] if node.target else []) + list(node.args)]
        operator = OPERATORS.get(node.function)
        if operator is not None:
            return operator(parts)
        if node.function in MATHS:
            return maths(node.function, parts)
        return _function(node, parts)


def _function(node: Call, parts: list[Run]) -> Run:
    function = FUNCTIONS.get(node.function)
    if function is None:
        raise CelSyntaxError(f"there is no function {node.function}()")
    member = node.target is not None
    if function.style not in ("both", "member" if member else "global"):
        shown = f"x.{node.function}()" if function.style == "member" else f"{node.function}(x)"
        raise CelSyntaxError(f"{node.function} is called as {shown}")
    if not function.least <= len(parts) <= function.most:
        raise CelSyntaxError(f"{node.function}() does not take {len(node.args)} arguments")
    if node.function == "matches" and isinstance(node.args[-1], Literal):
        _check_pattern(node.args[-1].value)
    call = function.call
    if len(parts) == 1:
        only = parts[0]
        return lambda frame: call(frame.charged(), only(frame))
    return lambda frame: call(frame.charged(), *[part(frame) for part in parts])


def _check_pattern(pattern: Any) -> None:
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
        raise CelSyntaxError(f"matches() takes a pattern of at most {MAX_PATTERN} characters")
    try:
        compile_pattern(pattern)
    except (PatternError, OverflowError, RecursionError) as error:
        raise CelSyntaxError(f"the pattern of matches() cannot be compiled: {error}") from error
