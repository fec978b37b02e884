"""The Dockerfile, by rules that need no build: pinned, without root, and nothing in it by chance."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployments import ROOT

from pipeline.deploy.pods import GROUP, USER

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8")
KNOWN = {"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "LABEL", "RUN", "SHELL", "USER", "VOLUME", "WORKDIR"}
SECRET = re.compile(r"(?i)(token|secret|password|credential|api_?key|access_?key)")


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Word and rest of each instruction, lines joined, variables with a default filled in."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    defaults: dict[str, str] = {}
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        word, _, rest = line.strip().partition(" ")
        rest = re.sub(r"\$\{(\w+)\}", lambda found: defaults.get(found[1], found[0]), " ".join(rest.split()))
        if word.upper() == "ARG" and "=" in rest:
            name, _, value = rest.partition("=")
            defaults[name] = value
        yield word.upper(), rest


def faults(text: str, ignored: str = IGNORED) -> list[str]:
    """What is wrong with a Dockerfile."""
    read = list(instructions(text))
    found = [f"no such instruction: {word}" for word, _ in read if word not in KNOWN]
    stages = {rest.split()[2] for word, rest in read if word == "FROM" and " AS " in rest}
    for word, rest in read:
        if word == "FROM" and not re.search(r"(:(?!latest\b)[\w.-]+|@sha256:\w{64})( AS \w+)?$", rest):
            found.append(f"a base that may be another tomorrow: {rest}")
        elif word == "ADD":
            found.append("ADD fetches and unpacks; COPY does not")
        elif word in ("ARG", "ENV") and any(SECRET.search(name) for name in re.findall(r"(\w+)=", rest)):
            found.append(f"stays in the image for everybody to read: {rest}")
        elif word == "RUN":
            found += _run(rest)
        elif word == "COPY":
            found += _copy(rest, stages, ignored)
        elif word == "WORKDIR" and not rest.startswith("/"):
            found.append(f"depends on where it was before: WORKDIR {rest}")
        elif word in ("CMD", "ENTRYPOINT") and not rest.startswith("["):
            found.append(f"a shell between the signal and the program: {word} {rest}")
    last = max(number for number, (word, _) in enumerate(read) if word == "FROM")
    users = [rest for word, rest in read[last:] if word == "USER"]
    if not users or not re.fullmatch(r"[1-9]\d*:\d+", users[-1]):
        found.append("the last USER must be a number other than 0, or Kubernetes cannot tell that it is not root")
    return found


def _run(rest: str) -> Iterator[str]:
    if re.search(r"(curl|wget)\b[^|]*\|\s*(ba|z)?sh", rest):
        yield f"runs what it has not looked at: {rest}"
    if re.search(r"\bsudo\b|chmod (-R )?[0-7]*7[67]7", rest):
        yield f"gives too many rights: {rest}"
    if "apt-get install" in rest and not ("--no-install-recommends" in rest and "/var/lib/apt/lists" in rest):
        yield f"installs more than it is asked, or keeps its lists: {rest}"
    for one in re.findall(r"pip install ([^&|;]*)", rest):
        if not ("--no-deps" in one or re.search(r"(-r|==)", one)):
            yield f"installs versions of today: {one}"


def _copy(rest: str, stages: set[str], ignored: str) -> Iterator[str]:
    if source := re.match(r"--from=(\S+)", rest):
        if source[1] not in stages:
            yield f"no such stage: {source[1]}"
        return
    for path in rest.split()[:-1]:
        if not (ROOT / path).exists():
            yield f"is not there: {path}"
        elif not _is_sent(path, ignored):
            yield f".dockerignore keeps it out: {path}"


def _is_sent(path: str, ignored: str) -> bool:
    """As docker reads .dockerignore: the last pattern that matches the path or a folder above it decides."""
    sent = True
    above = [str(one) for one in (Path(path), *Path(path).parents) if str(one) != "."]
    for line in ignored.splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#") and any(fnmatch.fnmatch(one, pattern.lstrip("!")) for one in above):
            sent = pattern.startswith("!")
    return sent


def test_the_dockerfile_follows_the_rules() -> None:
    assert faults(TEXT) == []


def test_it_fits_the_locks_the_package_and_the_manifests() -> None:
    words = list(instructions(TEXT))
    values = dict(rest.split("=", 1) for word, rest in words if word == "ARG" and "=" in rest)
    for lock in ("cpu", "gpu"):
        text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
        assert f"ray=={values['RAY_VERSION']}\n" in text
        assert re.search(r"^setuptools==", text, re.MULTILINE), "--no-build-isolation builds with what is there"
    python = re.search(r'requires-python = ">=3\.(\d+),', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert python is not None
    assert f"-py3{python[1]}-" in values["BASE"]
    assert [rest for word, rest in words if word == "USER"][-1] == f"{USER}:{GROUP}"


def test_nothing_else_is_sent_to_be_built() -> None:
    for path in ("tests", ".git", "jobs", ".venv", ".ci", "docs", "deploy"):
        assert not _is_sent(path, IGNORED), path
    assert _is_sent("pipeline/steps/codes.toml", IGNORED)
    assert not _is_sent("pipeline/__pycache__", IGNORED)


MISTAKES = {
    "FROM ${BASE}\nLABEL": ("FROM rayproject/ray:latest\nLABEL", "another tomorrow"),
    "FROM ${BASE} AS build": ("FROM rayproject/ray AS build", "another tomorrow"),
    "USER 1000:100": ("USER root", "the last USER"),
    "WORKDIR /scratch": ("WORKDIR scratch", "depends on where"),
    'CMD ["gristmill", "--help"]': ("CMD gristmill --help", "a shell between"),
    "COPY pipeline pipeline": ("ADD pipeline pipeline", "ADD fetches"),
    "COPY --from=build /opt": ("COPY --from=built /opt", "no such stage"),
    "COPY pyproject.toml README.md": ("COPY pyproject.toml READ.md", "is not there: READ.md"),
    "RUN mkdir /models": ("RUN curl -s https://example.com/x | bash && mkdir /models", "has not looked at"),
    "chown 1000:100": ("chmod -R 777 /models; chown 1000:100", "too many rights"),
    "--quiet --no-deps --no-build-isolation .": ("vllm", "versions of today"),
    "    HF_HOME=/models": ("    HF_TOKEN=abc", "for everybody to read"),
    "VOLUME": ("VOLUMES", "no such instruction"),
    "RUN python -m venv": ("RUN apt-get install gcc && python -m venv", "more than it is asked"),
}


@pytest.mark.parametrize("right", MISTAKES)
def test_mistakes_are_found(right: str) -> None:
    wrong, told = MISTAKES[right]
    assert right in TEXT
    found = faults(TEXT.replace(right, wrong))
    assert any(told in text for text in found), found


def test_a_file_that_is_kept_out_is_found() -> None:
    assert faults(TEXT, IGNORED.replace("!LICENSE\n", "")) == [".dockerignore keeps it out: LICENSE"]
