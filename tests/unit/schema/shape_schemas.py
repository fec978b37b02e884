"""Random schemas over all of JSON Schema 2020-12, and random values that may or may not satisfy them.

All is drawn from one `random.Random`, so that Hypothesis can draw it (`st.randoms`) and a long search can, too.
"""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from shape_values import FORMATS, NAMES, NUMBERS, PATTERNS, SCALARS, STEPS, TYPES


class Maker:
    """Draws schemas and values. `weight` is how many keywords are still to be spent."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.defs: list[str] = []

    def document(self) -> dict[str, Any]:
        """A whole schema, with definitions that may refer to each other."""
        rng = self.rng
        self.defs = ["d0", "d1"][: rng.choice([0, 0, 1, 2])]
        root = self.schema(rng.choice([1, 2, 2, 3]))
        root = root if isinstance(root, dict) else {"type": "object", "properties": {"a": root}}
        if self.defs:
            root["$defs"] = {name: self.schema(2) for name in self.defs}
        return root

    def schema(self, depth: int) -> Any:
        """A schema of at most so many levels."""
        rng = self.rng
        if rng.random() < 0.05:
            return rng.choice([True, False, {}])
        if rng.random() < 0.12 and self.defs:
            found: dict[str, Any] = {"$ref": f"#/$defs/{rng.choice(self.defs)}"}
            if rng.random() < 0.3:
                found |= self._of_type(rng.choice(TYPES), depth - 1)
            return found
        if rng.random() < 0.1:
            return self._constants()
        found = self._typed(depth)
        if depth > 0 and rng.random() < 0.35:
            self._applicator(found, depth - 1)
        return found

    def _typed(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        kinds = TYPES if depth > 0 else ["string", "integer", "number", "boolean", "null"]
        kind = rng.choice([*kinds, "object"] if depth > 0 else kinds)
        roll = rng.random()
        found = self._of_type(kind, depth)
        if roll < 0.12:
            others = rng.sample(TYPES, rng.choice([1, 2]))
            found["type"] = list(dict.fromkeys([kind, *others]))
            found |= self._of_type(rng.choice(others), depth) if rng.random() < 0.5 else {}
            found["type"] = list(dict.fromkeys([kind, *others]))
        elif roll < 0.22:
            del found["type"]
        if rng.random() < 0.06:
            found |= self._constants()
        return found

    def _constants(self) -> dict[str, Any]:
        rng = self.rng
        if rng.random() < 0.4:
            return {"const": self.constant()}
        chosen = [self.constant() for _ in range(rng.choice([1, 2, 3, 5]))]
        return {"enum": [one for index, one in enumerate(chosen) if one not in chosen[:index]]}

    def constant(self) -> Any:
        """A value for an enum."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.85:
            return rng.choice(SCALARS)
        if roll < 0.92:
            return [rng.choice(SCALARS) for _ in range(rng.choice([0, 1, 2]))]
        return {rng.choice(NAMES): rng.choice(SCALARS) for _ in range(rng.choice([0, 1, 2]))}

    def _of_type(self, kind: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {"type": kind}
        if kind in ("integer", "number"):
            self._some(
                found,
                {
                    "minimum": NUMBERS,
                    "maximum": NUMBERS,
                    "exclusiveMinimum": NUMBERS,
                    "exclusiveMaximum": NUMBERS,
                    "multipleOf": STEPS,
                },
                0.25,
            )
        elif kind == "string":
            self._some(
                found,
                {
                    "minLength": [0, 1, 2, 5],
                    "maxLength": [0, 1, 3, 5, 40],
                    "pattern": PATTERNS,
                    "format": FORMATS,
                },
                0.3,
            )
        elif kind == "array":
            self._array(found, depth - 1)
        elif kind == "object":
            self._object(found, depth - 1)
        return found

    def _some(self, found: dict[str, Any], table: dict[str, list[Any]], share: float) -> None:
        for keyword, values in table.items():
            if self.rng.random() < share:
                found[keyword] = self.rng.choice(values)

    def _array(self, found: dict[str, Any], depth: int) -> None:
        rng = self.rng
        if depth >= 0 and rng.random() < 0.8:
            found["items"] = self.schema(depth)
        if depth >= 0 and rng.random() < 0.2:
            found["prefixItems"] = [self.schema(depth) for _ in range(rng.choice([1, 2]))]
        self._some(found, {"minItems": [0, 1, 2, 3], "maxItems": [0, 1, 2, 4], "uniqueItems": [True, False]}, 0.2)
        if depth >= 0 and rng.random() < 0.12:
            found["contains"] = self.schema(depth)
            self._some(found, {"minContains": [0, 1, 2], "maxContains": [1, 2]}, 0.4)
        if depth >= 0 and rng.random() < 0.06:
            found["unevaluatedItems"] = self.schema(depth)

    def _object(self, found: dict[str, Any], depth: int) -> None:
        rng = self.rng
        names = rng.sample(NAMES, rng.choice([0, 1, 2, 3]))
        if names and depth >= 0:
            found["properties"] = {name: self.schema(depth) for name in names}
        if rng.random() < 0.5:
            pool = names if rng.random() < 0.8 else NAMES
            found["required"] = rng.sample(pool, min(len(pool), rng.choice([1, 1, 2])))
        if depth >= 0 and rng.random() < 0.35:
            found["additionalProperties"] = rng.choice([False, False, True, self.schema(depth)])
        if depth >= 0 and rng.random() < 0.1:
            chosen = rng.sample(PATTERNS, rng.choice([1, 1, 2]))
            found["patternProperties"] = {pattern: self.schema(depth) for pattern in chosen}
        if rng.random() < 0.07:
            found["propertyNames"] = rng.choice(
                [{"pattern": rng.choice(PATTERNS)}, {"maxLength": 2}, {"enum": ["a", "b"]}, False, {"type": "string"}]
            )
        self._some(found, {"minProperties": [0, 1, 2, 3], "maxProperties": [0, 1, 2, 4]}, 0.08)
        if names and rng.random() < 0.08:
            found["dependentRequired"] = {names[0]: [rng.choice(NAMES)]}
        if names and depth >= 0 and rng.random() < 0.06:
            found["dependentSchemas"] = {names[0]: self.schema(depth)}
        if depth >= 0 and rng.random() < 0.07:
            found["unevaluatedProperties"] = rng.choice([False, False, self.schema(depth)])

    def _applicator(self, found: dict[str, Any], depth: int) -> None:
        rng = self.rng
        keyword = rng.choice(["allOf", "anyOf", "anyOf", "oneOf", "oneOf", "not", "if", "tagged"])
        if keyword == "tagged":
            tags = rng.sample(["x", "y", "z"], 2)
            found[rng.choice(["oneOf", "anyOf"])] = [self._tagged(tag, depth) for tag in tags]
        elif keyword == "if":
            found["if"] = self.schema(depth)
            for branch in ("then", "else"):
                if rng.random() < 0.7:
                    found[branch] = self.schema(depth)
        elif keyword == "not":
            found["not"] = self.schema(depth)
        else:
            found[keyword] = [self.schema(depth) for _ in range(rng.choice([1, 2, 2, 3]))]
        if rng.random() < 0.5:  # where it stands among the other keywords ranks the keys
            found[keyword] = found.pop(keyword) if keyword in found else True
            if found[keyword] is True and keyword == "tagged":
                del found[keyword]
            for other in [name for name in found if name != keyword]:
                found[other] = found.pop(other)

    def _tagged(self, tag: str, depth: int) -> dict[str, Any]:
        found = self._of_type("object", depth)
        found["properties"] = {"kind": {"const": tag}, **found.get("properties", {})}
        found["required"] = ["kind"]
        return found

    def value(self, depth: int = 3) -> Any:
        """Any JSON value, of the constants and names that the schemas use."""
        rng = self.rng
        roll = rng.random()
        if depth == 0 or roll < 0.4:
            return rng.choice(SCALARS)
        if roll < 0.5:
            return round(rng.uniform(-20, 20), rng.choice([0, 1, 2, 3]))
        if roll < 0.65:
            return [self.value(depth - 1) for _ in range(rng.choice([0, 1, 2, 3]))]
        return {name: self.value(depth - 1) for name in rng.sample(NAMES, rng.choice([0, 1, 2, 3]))}

    def mutated(self, value: Any) -> Any:
        """A value with one part changed, taken out, added or moved."""
        changed = copy.deepcopy({"": value})
        holders: list[tuple[Any, Any]] = []
        pending: list[Any] = [changed]
        for holder in pending:  # grows
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
            for key in keys:
                holders.append((holder, key))
                if isinstance(holder[key], dict | list):
                    pending.append(holder[key])
        holder, key = self.rng.choice(holders)
        part = holder[key]
        if holder is not changed and self.rng.random() < 0.25:
            del holder[key]
        elif isinstance(part, dict) and self.rng.random() < 0.5:
            part[self.rng.choice(NAMES)] = self.value(1)
        elif isinstance(part, list) and self.rng.random() < 0.5:
            part.append(self.rng.choice(part) if part and self.rng.random() < 0.5 else self.value(1))
        elif isinstance(part, str) and self.rng.random() < 0.6:
            at = self.rng.randrange(len(part) + 1)
            holder[key] = part[:at] + self.rng.choice(['"', "\\", "a", "é", "\x7f", "1", "\n", "😀"]) + part[at:]
        elif isinstance(part, int | float) and not isinstance(part, bool) and self.rng.random() < 0.6:
            holder[key] = part + self.rng.choice([1, -1, 0.5, 0.01])
        else:
            holder[key] = self.value(1)
        return json.loads(json.dumps(changed[""]))
