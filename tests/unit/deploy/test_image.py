"""The Dockerfile, by rules that need no build: pinned, without root, and nothing in it by chance."""

from __future__ import annotations

import fnmatch
import importlib.util
import re
import shutil
import subprocess
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
        if word == "FROM":
            found += _from(rest, stages)
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


def _from(rest: str, stages: set[str]) -> Iterator[str]:
    base = rest.partition(" AS ")[0]
    if base not in stages and not re.search(r":(?!latest\b)[\w.-]+$|@sha256:\w{64}$", base):
        yield f"a base that may be another tomorrow: {rest}"


def _run(rest: str) -> Iterator[str]:
    if re.search(r"(curl|wget)\b[^|]*\|\s*(ba|z)?sh", rest):
        yield f"runs what it has not looked at: {rest}"
    if re.search(r"(^|[;&|] *)sudo\b|chmod (-R )?[0-7]*7[67]7", rest):
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
    python = re.search(r'requires-python = ">=3\.(\d+),', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert python is not None
    for flavour in ("cpu", "gpu"):
        text = (ROOT / "requirements" / f"{flavour}.lock").read_text(encoding="utf-8")
        base = re.fullmatch(r"rayproject/ray:([\d.]+)-py3(\d+)-(cpu|cu\d+)", values[f"{flavour.upper()}_BASE"])
        assert base is not None and f"ray=={base[1]}\n" in text and base[2] == python[1]
        toolkit = re.search(r"^cuda-toolkit==(\d+)\.(\d+)", text, re.MULTILINE)
        # FlashInfer compiles with the toolkit of the base while an engine starts, and links to that of the lock.
        assert base[3] == (f"cu{toolkit[1]}{toolkit[2]}" if toolkit else "cpu")
        assert re.search(r"^setuptools==", text, re.MULTILINE), "--no-build-isolation builds with what is there"
        assert f"base-{flavour}" in {rest.split()[-1] for word, rest in words if word == "FROM"}
    assert [rest for word, rest in words if word == "USER"][-1] == f"{USER}:{GROUP}"


@pytest.mark.skipif(shutil.which("readelf") is None, reason="binutils are not installed")
def test_what_vllms_kernels_ask_of_the_system_is_in_the_image() -> None:
    vllm = importlib.util.find_spec("vllm")
    assert vllm is not None and vllm.origin is not None
    asked: set[str] = set()
    for library in Path(vllm.origin).parent.glob("_C*.so"):
        told = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        asked |= set(re.findall(r"NEEDED.*\[(.*?)\.so", told))
    libc = {"libc", "libm", "libdl", "libpthread", "ld-linux-x86-64", "libgcc_s", "libstdc++"}
    brought = {path.name.split(".so")[0] for path in Path(vllm.origin).parents[1].glob("torch/lib/*.so*")}
    assert asked and asked - libc - brought == {"libnuma"}
    assert any("libnuma1" in rest for word, rest in instructions(TEXT) if word == "RUN")


def test_nothing_else_is_sent_to_be_built() -> None:
    for path in ("tests", ".git", "jobs", ".venv", ".ci", "docs", "deploy"):
        assert not _is_sent(path, IGNORED), path
    assert _is_sent("pipeline/steps/codes.toml", IGNORED)
    assert not _is_sent("pipeline/__pycache__", IGNORED)


MISTAKES = {
    "FROM base-${FLAVOUR}\nLABEL": ("FROM rayproject/ray:latest\nLABEL", "another tomorrow"),
    "FROM base-${FLAVOUR} AS build": ("FROM rayproject/ray AS build", "another tomorrow"),
    "FROM ${GPU_BASE} AS": ("FROM base-cuda AS", "another tomorrow"),
    "USER 1000:100": ("USER root", "the last USER"),
    "WORKDIR /scratch": ("WORKDIR scratch", "depends on where"),
    'CMD ["gristmill", "--help"]': ("CMD gristmill --help", "a shell between"),
    "COPY pipeline pipeline": ("ADD pipeline pipeline", "ADD fetches"),
    "COPY --from=build /opt": ("COPY --from=built /opt", "no such stage"),
    "COPY pyproject.toml README.md": ("COPY pyproject.toml READ.md", "is not there: READ.md"),
    "RUN rm -f /usr/bin/sudo": ("RUN curl -s https://example.com/x | bash", "has not looked at"),
    "    mkdir /models": ("    sudo mkdir /models", "too many rights"),
    "chown 1000:100": ("chmod -R 777 /models; chown 1000:100", "too many rights"),
    "--quiet --no-cache-dir --no-deps --no-build-isolation .": ("vllm", "versions of today"),
    "    HF_HOME=/models": ("    HF_TOKEN=abc", "for everybody to read"),
    "VOLUME": ("VOLUMES", "no such instruction"),
    "apt-get install --yes --no-install-recommends": ("apt-get install --yes", "more than it is asked"),
}


@pytest.mark.parametrize("right", MISTAKES)
def test_mistakes_are_found(right: str) -> None:
    wrong, told = MISTAKES[right]
    assert right in TEXT
    found = faults(TEXT.replace(right, wrong))
    assert any(told in text for text in found), found


def test_a_file_that_is_kept_out_is_found() -> None:
    assert faults(TEXT, IGNORED.replace("!LICENSE\n", "")) == [".dockerignore keeps it out: LICENSE"]
