"""Reading job files and engine configs: YAML in, checked models out, mistakes named with the nearest key.

Paths are relative to the file that names them, and `~` is the home directory. They may hold `${NAME}` or
`${NAME:-default}` from the environment; one that begins with such a variable, when it is set, is relative to the
working directory. An empty variable counts as one that is not set.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from pipeline.errors import JobFileError
from pipeline.job import EngineConfig, JobConfig, RecordedConfig, SamplerConfig, VllmConfig, WorkConfig
from pipeline.jobhttp import HttpConfig

Work = TypeVar("Work", bound=WorkConfig)
Model = TypeVar("Model", bound=BaseModel)

_ENGINE: TypeAdapter[Any] = TypeAdapter(EngineConfig)
_PATH_OF = {"recorded": "recording", "http": "tokenizer"}
"""The key of an engine config that may be a path; `model` of all others."""

_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


def load_job(path: str | Path, slot: str | None = None) -> JobConfig:
    """Read and check a job file; its `engine` and each of its `engines` may be an inline mapping or the path of an
    engine config. A `slot` that is given stands in place of the file's.

    Raises:
        JobFileError: the file is missing, is not YAML, or has a wrong, repeated or unknown key (the nearest is named).
    """
    path = Path(path)
    job = read_work(read_yaml(path), path.parent, JobConfig, str(path))
    where = job.input.model_copy(update={"path": _relative_to(path.parent, job.input.path)})
    update: dict[str, Any] = {"input": where, "output": _relative_to(path.parent, job.output)}
    if job.canary is not None and job.canary.schemas is not None:
        schemas = _relative_to(path.parent, job.canary.schemas)
        update["canary"] = job.canary.model_copy(update={"schemas": schemas})
    return job.model_copy(update=update if slot is None else {**update, "slot": slot})


def load_yaml(path: str | Path, model: type[Model]) -> Model:
    """Read and check another file of ours, such as values for manifests. Paths in it stay as they are.

    Raises:
        JobFileError: as for `load_job`.
    """
    found: Model = _checked(TypeAdapter(model), read_yaml(Path(path)), str(path), model)
    return found


def read_work(data: dict[str, Any], base: Path, model: type[Work], where: str) -> Work:
    """Check what extracts documents, in a job or in an application; `engine` and `engines` as for `load_job`. Paths in
    it are relative to `base`; `where` it was written, for messages.

    Raises:
        JobFileError: as for `load_job`.
    """
    data = dict(data)
    if isinstance(data.get("engine"), str):
        data["engine"] = load_engine(_relative_to(base, data["engine"])).model_dump()
    if isinstance(data.get("engines"), dict):
        data["engines"] = {
            name: load_engine(_relative_to(base, engine)).model_dump() if isinstance(engine, str) else engine
            for name, engine in data["engines"].items()
        }
    work: Work = _checked(TypeAdapter(model), data, where, model)
    engines = {name: _placed(base, engine) for name, engine in work.engines.items()}
    lookups = tuple(one.model_copy(update={"path": _relative_to(base, one.path)}) for one in work.lookups)
    lines = work.events.path and _relative_to(base, work.events.path)
    update = {
        "engine": _placed(base, work.engine),
        "engines": engines,
        "events": work.events.model_copy(update={"path": lines}),
        "lookups": lookups,
        "schemas": _relative_to(base, work.schemas),
    }
    return work.model_copy(update=update)


def load_engine(path: str | Path) -> Any:
    """Read and check an engine config (a file of `serve_configs/`).

    Raises:
        JobFileError: as for `load_job`.
    """
    path = Path(path)
    return _placed(path.parent, _checked(_ENGINE, read_yaml(path), str(path), JobConfig))


def relative_paths(path: str | Path) -> dict[str, str]:
    """The paths in a job file, and in engine configs that it names, which depend on where the file lies: by key, as
    they are seen from here. They mean nothing on another machine unless the files travel, too. The job is one that
    `load_job` takes."""
    path = Path(path)
    data, base = read_yaml(path), path.parent
    found = {"schemas": _moving(base, data.get("schemas", "schemas")), "output": _moving(base, data["output"])}
    found["input.path"] = _moving(base, data["input"]["path"])
    if schemas := (data.get("canary") or {}).get("schemas"):
        found["canary.schemas"] = _moving(base, schemas)
    found |= {f"lookups.{n}.path": _moving(base, one["path"]) for n, one in enumerate(data.get("lookups") or ())}
    others = {f"engines.{name}": engine for name, engine in (data.get("engines") or {}).items()}
    for key, engine in {"engine": data["engine"], **others}.items():
        place = base
        if isinstance(engine, str):
            found[key] = _moving(base, engine)
            if found[key] is None:
                continue  # what lies beside a file that does not move does not move either
            file = Path(_relative_to(base, engine))
            place, engine = file.parent, read_yaml(file)
        name = _PATH_OF.get(engine["engine"], "model")
        if _is_path(name, engine.get(name, "")):
            found[f"{key}.{name}"] = _moving(place, engine[name])
    return {key: path for key, path in found.items() if path is not None}


def _moving(base: Path, path: str) -> str | None:
    """A relative path as seen from here, by its own name where it is a link; None for a URI and an absolute path, which
    mean the same everywhere."""
    leading = _VARIABLE.match(path)
    if leading and os.environ.get(leading["name"]):
        base = Path()
    plain = _VARIABLE.sub(_value_of, path)
    return None if "://" in plain or plain.startswith(("/", "~")) else os.path.abspath(base / plain)


def _is_path(key: str, value: str) -> bool:
    return key == "recording" or value.startswith((".", "/", "~", "${"))


def _placed(base: Path, config: Any) -> Any:
    """An engine config whose paths no longer depend on the file that they stood in. Model names are not paths."""
    key = _PATH_OF.get(config.engine, "model")
    path = getattr(config, key)
    return config.model_copy(update={key: _relative_to(base, path)}) if _is_path(key, path) else config


def _relative_to(base: Path, path: str) -> str:
    """`path` as seen from `base`, variables and `~` filled in; URIs and absolute paths stay as they are."""
    leading = _VARIABLE.match(path)
    if leading and os.environ.get(leading["name"]):
        base = Path()
    path = _VARIABLE.sub(_value_of, path)
    return path if "://" in path else str((base / os.path.expanduser(path)).resolve())


def _value_of(variable: re.Match[str]) -> str:
    value = os.environ.get(variable["name"]) or variable["default"]
    if value is None:
        raise JobFileError(f"{variable[0]} is not set in the environment and has no default.")
    return value


class _Loader(yaml.SafeLoader):
    """Refuses keys that occur twice, of which YAML would take the last and say nothing."""

    def __init__(self, text: str, path: Path) -> None:
        super().__init__(text)
        self._path = path

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # Composed, not constructed: merge keys (`<<`) are not yet filled in, and what they bring may occur again.
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                line = key.start_mark.line + 1
                raise JobFileError(
                    f"{self._path}, line {line}: the key `{key.value}` occurs twice. Remove one of them."
                )
            seen.add((key.tag, key.value))
        return node

    def construct_date(self, node: yaml.ScalarNode) -> Any:
        """As YAML has it, with an error for a day that is none."""
        return self.construct_yaml_timestamp(node)


# Some libraries take dates out of the loader that all share.
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_date)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        JobFileError: it cannot be read, is not YAML, repeats a key, or holds no mapping.
    """
    try:
        data = _Loader(path.read_text(encoding="utf-8"), path).get_single_data()
    except OSError as error:
        raise JobFileError(f"cannot read {path}: {error.strerror}. Give the path of a YAML file.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise JobFileError(f"{path} is not YAML: {error}") from error
    if not isinstance(data, dict):
        raise JobFileError(f"{path} must hold a mapping of keys to values, found {type(data).__name__}.")
    return data


def _checked(adapter: TypeAdapter[Any], data: dict[str, Any], where: str, model: type[BaseModel]) -> Any:
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        lines = [_explain(item, model) for item in error.errors()]
        raise JobFileError("\n".join([f"{where} cannot be used:", *(f"  {line}" for line in lines)])) from error


def _explain(item: Any, model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in item["loc"])
    if item["type"] != "extra_forbidden":
        return f"{where or 'the file'}: {item['msg']}"
    unknown = str(item["loc"][-1])
    known = _known_keys(item["loc"][:-1], model)
    nearest = difflib.get_close_matches(unknown, known, n=1, cutoff=0.4)
    hint = f"did you mean `{nearest[0]}`?" if nearest else f"known here: {', '.join(known)}"
    return f"{where}: unknown key; {hint}"


def _known_keys(where: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    """The keys that the model at `where` (a pydantic error location in `model`) has."""
    engines: dict[str, type[BaseModel]] = {
        "vllm": VllmConfig,
        "sampler": SamplerConfig,
        "recorded": RecordedConfig,
        "http": HttpConfig,
    }
    for part in where:
        if part in engines:
            model = engines[str(part)]
        elif part in model.model_fields:
            model = _model_in(model.model_fields[str(part)].annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The first model that an annotation speaks of; of several engines, their tag in the location says which."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner)) is not None), None)
