"""What a new version of a schema means for old records, for readers of the output, and for the model.

`drift(old, new)` compares two loaded schemas keyword by keyword; see `docs/drift.md` for the classes and the rules.
"""

from pipeline.schema.drift.compare import drift
from pipeline.schema.drift.report import Change, Class, Drift, ModelClass, to_json, worst

__all__ = ["Change", "Class", "Drift", "ModelClass", "drift", "to_json", "worst"]
