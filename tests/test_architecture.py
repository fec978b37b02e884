"""The habits that a machine can check, and that the map in ARCHITECTURE.md is the territory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(p for folder in ("pipeline", "jobs", "bench", "tests") for p in (ROOT / folder).rglob("*.py"))
MAX_FILE, MAX_FUNCTION, MAX_ARGUMENTS = 250, 40, 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Function):
            yield node


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_files_and_functions_stay_small(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_FILE, f"{lines} lines"
    for function in functions(path):
        length = (function.end_lineno or 0) - function.lineno + 1
        assert length <= MAX_FUNCTION, f"{function.name} has {length} lines"
        if path.parts[len(ROOT.parts)] == "pipeline" and function.name not in ("run",):
            arguments = [a for a in [*function.args.args, *function.args.kwonlyargs] if a.arg not in ("self", "cls")]
            assert len(arguments) <= MAX_ARGUMENTS, f"{function.name} takes {len(arguments)} arguments"


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    assert not [path for path in SOURCES if path.stem in ("utils", "helpers", "common", "misc")]


def test_untrusted_input_never_meets_eval_or_pickle() -> None:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), name(path)
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not {"pickle", "cloudpickle", "unittest.mock"} & set(modules), name(path)


def test_the_map_names_every_module_and_nothing_that_is_not_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 140
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", text))
    package = ROOT / "pipeline"
    for module in named:
        assert (package / module).exists() or (ROOT / module).exists(), f"{module} is named but not there"
    modules = {str(path.relative_to(package)) for path in package.rglob("*.py") if path.name != "__init__.py"}
    inside = {module for module in modules if module.count("/") > 1}  # each says in its first line what it is for
    assert not modules - inside - named
    folders = {module.rpartition("/")[0] for module in inside}
    assert not {folder for folder in folders if f"`{folder}/`" not in text}, "the map names the folder of a package"


def test_every_public_name_says_what_it_is_for() -> None:
    for path in (ROOT / "pipeline").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree) or path.name == "__init__.py", f"{name(path)} has no docstring"
        for node in tree.body:
            if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{name(path)}: {node.name} has no docstring"
