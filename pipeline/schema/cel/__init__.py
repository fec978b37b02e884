"""Rules in CEL, the Common Expression Language of Kubernetes' `x-kubernetes-validations`, over exact numbers.

`compile_rule` reads a rule once; `Program.holds` judges a value. The libraries that exist calculate in binary doubles,
where 10.3 is not 10.1 + 0.2, and refuse to multiply an integer by a double; docs/rules.md has the language.
"""

from __future__ import annotations

from pipeline.schema.cel.program import Program, compile_rule
from pipeline.schema.cel.reads import reads
from pipeline.schema.cel.syntax import CelSyntaxError
from pipeline.schema.cel.values import CelError, Meter, TooCostly

__all__ = ["CelError", "CelSyntaxError", "Meter", "Program", "TooCostly", "compile_rule", "reads"]
