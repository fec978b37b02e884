"""The working directory of a submission: what Ray will send of it, and whether the job finds there what it names."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import JobFileError
from pipeline.jobfile import relative_paths

_TALKATIVE = (
    "ray.dashboard.modules.dashboard_sdk",
    "ray.dashboard.modules.job.sdk",
    "ray._private.runtime_env.packaging",
    "ray._private.runtime_env.working_dir",
)


@dataclass(frozen=True, slots=True)
class Package:
    """Files that Ray will send, with "/" between names and relative to `folder`, and their bytes."""

    folder: Path
    excludes: tuple[str, ...]
    files: Mapping[str, int]

    @property
    def size(self) -> int:
        """Bytes of all files, before Ray packs them."""
        return sum(self.files.values())

    def holds(self, path: Path) -> bool:
        """Whether a file, or anything of a folder, is sent."""
        name = path.relative_to(self.folder).as_posix()
        return name == "." or name in self.files or any(one.startswith(f"{name}/") for one in self.files)


def package_of(folder: Path, excludes: Sequence[str]) -> Package:
    """What Ray sends of a folder: all but what `excludes`, .gitignore, .rayignore (patterns as in .gitignore) and Ray
    itself leave out. By Ray's own functions, since nothing else would be what it does.

    Raises:
        JobFileError: there is no such folder, or a part of it cannot be read.
    """
    from ray._private import ray_constants
    from ray._private.runtime_env import packaging

    quiet_ray()
    folder = Path(os.path.abspath(folder))
    if not folder.is_dir():
        raise JobFileError(f"--working-dir: {folder} is no folder.")
    files: dict[str, int] = {}

    def seen(path: Path) -> None:
        if path.is_file():
            files[path.relative_to(folder).as_posix()] = path.stat().st_size

    ignored = os.environ.get(ray_constants.RAY_RUNTIME_ENV_IGNORE_GITIGNORE, "0") != "1"
    left_out = packaging._get_excludes(folder, [*ray_constants.get_runtime_env_default_excludes(), *excludes])
    travel: Callable[..., Any] = packaging._dir_travel
    try:
        travel(folder, [left_out], seen, include_gitignore=ignored)
    except OSError as error:
        raise JobFileError(f"--working-dir: cannot read {error.filename}: {error.strerror}.") from error
    return Package(folder, tuple(excludes), files)


def quiet_ray() -> None:
    """Let Ray say of packages and uploads only what is wrong; each of its modules has a level of its own."""
    import ray.job_submission  # noqa: F401  # what is imported later would set its level anew

    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.ERROR)


def path_in(package: Package, job_path: Path) -> str:
    """The job file's path in the working directory, after a check that all it names by a relative path is sent, too.

    Raises:
        JobFileError: something would be missing on the cluster, or the output would be written into Ray's copy of the
            working directory, which goes with the job.
    """
    job_path = Path(os.path.abspath(job_path))  # Ray sends what a link leads to, under the link's name
    for key, path in {"the job file": str(job_path), **relative_paths(job_path)}.items():
        if key == "output":
            raise JobFileError(
                f"{job_path}: `output` is relative, so it would be written into Ray's copy of the working directory, "
                "which is removed after the job. Write s3://bucket/prefix, or the absolute path of a disk that all "
                "nodes of the cluster share."
            )
        _check_sent(package, key, Path(path))
    return job_path.relative_to(package.folder).as_posix()


def _check_sent(package: Package, key: str, path: Path) -> None:
    if not path.is_relative_to(package.folder):
        raise JobFileError(
            f"{key}: {path} is outside of the working directory {package.folder}, so it is not sent to the cluster. "
            "Give --working-dir a folder that holds the job and all that it names, or write a URI or an absolute path "
            "that the cluster has."
        )
    wild = re.search(r"[*?[]", str(path))
    fixed = Path(str(path)[: wild.start()].rpartition("/")[0]) if wild else path
    if fixed.exists() and not package.holds(fixed):
        raise JobFileError(
            f"{key}: {path} is not sent to the cluster: .gitignore, .rayignore, --exclude or Ray itself leaves it out. "
            "Move it, change what is left out (RAY_RUNTIME_ENV_IGNORE_GITIGNORE=1 passes over .gitignore), or write a "
            "URI or an absolute path that the cluster has."
        )
    if not fixed.exists():
        raise JobFileError(f"{key}: {path} does not exist. Mend the path in the job.")
