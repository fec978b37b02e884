"""docs/cluster.md and docs/operations.md: files render, names exist, every alert and exit code has its row."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from deployments import ROOT

from pipeline import errors
from pipeline.deploy.manifests import render
from pipeline.jobfile import load_job

CLUSTER = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
BOTH = CLUSTER + OPERATIONS
FILES = dict(re.findall(r"`(mine/[\w.]+)`[^\n`]*:\n\n```yaml\n(.*?)```", CLUSTER, re.DOTALL))
SCHEDULE = re.search(r"```yaml\n(schedule: .*\n)```", CLUSTER)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the guide, in something like a checkout."""
    monkeypatch.delenv("DATA", raising=False)
    for name in ("schemas", "serve_configs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "mine").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / "mine"


@pytest.mark.parametrize("values", [name for name in FILES if name.endswith(".values.yaml")])
def test_the_values_of_the_guide_render_once_and_every_night(mine: Path, values: str) -> None:
    path = mine.parent / values
    assert "kind: RayJob\n" in render(path)
    assert SCHEDULE is not None
    path.write_text(path.read_text(encoding="utf-8") + SCHEDULE[1], encoding="utf-8")
    assert "kind: RayCronJob\n" in render(path)


def test_the_files_of_the_guide_are_all_read(mine: Path) -> None:
    assert {path.name for path in mine.iterdir()} == {Path(name).name for name in FILES}
    assert len(FILES) == 5


def test_one_job_serves_a_machine_and_a_pod(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_job(mine / "night.job.yaml").output == "/data/out"
    monkeypatch.setenv("DATA", "/home/somebody/data")
    assert load_job(mine / "night.job.yaml").output == "/home/somebody/data/out"


def test_the_lines_for_cron_are_the_commands_that_were_tried_and_name_no_variable(tmp_path: Path) -> None:
    local = CLUSTER.split("## Kubernetes on one machine")[0]
    (script,) = re.findall(r"^cat << END\n.*?^END\n", local, re.MULTILINE | re.DOTALL)
    shell = {"PATH": os.environ["PATH"], "DATA": "/d"}
    printed = subprocess.run(
        ["bash", "-c", script], env=shell, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    *variables, boot, nightly = printed.stdout.splitlines()
    assert f"PATH={shell['PATH']}" in variables and "DATA=/d" in variables and "$" not in printed.stdout
    (head,) = re.findall(r"^ray start --head.*$", local, re.MULTILINE)
    assert boot.split(maxsplit=1) == ["@reboot", head]
    (submit,) = re.findall(r"^gristmill submit .*$", local, re.MULTILINE)
    assert submit in nightly and nightly.split()[5:8] == ["cd", str(tmp_path), "&&"]
    log = nightly.partition(">> ")[2].split()[0]
    assert not Path(log).is_relative_to(tmp_path), "it would be sent to the head with the checkout"


def test_the_service_account_of_terraform_is_that_of_the_values() -> None:
    (account,) = re.findall(r"service_accounts = \{ (\w+) = ", CLUSTER)
    (read, write) = re.findall(r'(?:read|write) = \["(\w+)"\]', CLUSTER)
    assert yaml.safe_load(FILES["mine/receipts.values.yaml"])["name"] == account
    job = yaml.safe_load(FILES["mine/receipts.job.yaml"])
    assert job["input"]["path"].split("/")[3] == read and job["output"].split("/")[3] == write


def test_one_run_of_its_own_can_be_told_again(mine: Path) -> None:
    (again,) = re.findall(r"```yaml\n(again: .*)\n```", CLUSTER)
    (identity,) = re.findall(r"`(identity: \{.*?\})`", CLUSTER)
    path = mine / "receipts.values.yaml"
    more = {"name": "again", **yaml.safe_load(identity), **yaml.safe_load(again)}
    values = {**yaml.safe_load(path.read_text(encoding="utf-8")), **more}
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    shown = render(path)
    assert "entrypoint: gristmill run /etc/gristmill/job.yaml --again engine\n" in shown
    assert "kind: ServiceAccount" not in shown
    assert "serviceAccountName: receipts\n" in shown


def test_outputs_and_folders_of_terraform_are_there() -> None:
    for environment, part in (("local", CLUSTER.split("## AWS")[0]), ("aws", CLUSTER.split("## AWS")[1])):
        folder = ROOT / "terraform" / "environments" / environment
        assert f"cd {folder.relative_to(ROOT)}" in part
        outputs = (folder / "outputs.tf").read_text(encoding="utf-8")
        for name in re.findall(r"terraform output -raw (\w+)", part):
            assert f'output "{name}"' in outputs, name
        variables = (folder / "variables.tf").read_text(encoding="utf-8")
        for name in re.findall(r"^(?:echo ')?([a-z]+_?[a-z]+) = [^(]", part, re.MULTILINE):
            assert f'variable "{name}"' in variables, name


def test_a_hub_cache_works_as_plain_files(tmp_path: Path) -> None:
    """As the guide lays it into a bucket: links followed, and what they lead to left out."""
    from huggingface_hub import snapshot_download

    (upload,) = re.findall(r"aws s3 cp .* \./models .*", CLUSTER)
    assert "--exclude '*blobs/*'" in upload
    model, commit = tmp_path / "made" / "models--owner--name", "1" * 40
    for path, text in (("blobs/a", "{}"), ("refs/main", commit)):
        (model / path).parent.mkdir(parents=True, exist_ok=True)
        (model / path).write_text(text, encoding="utf-8")
    (model / "snapshots" / commit).mkdir(parents=True)
    (model / "snapshots" / commit / "config.json").symlink_to("../../blobs/a")
    shutil.copytree(tmp_path / "made", tmp_path / "laid", ignore=shutil.ignore_patterns("blobs"))
    found = Path(snapshot_download("owner/name", cache_dir=tmp_path / "laid", local_files_only=True))
    assert (found / "config.json").read_text(encoding="utf-8") == "{}"


def test_the_charts_of_a_mirror_are_those_of_terraform() -> None:
    (charts,) = re.findall(r"charts = \{\n(.*?)\n  \}", CLUSTER, re.DOTALL)
    variables = (ROOT / "terraform" / "environments" / "aws" / "variables.tf").read_text(encoding="utf-8")
    (declared,) = re.findall(r'variable "charts" \{.*?\n\}', variables, re.DOTALL)
    for line in charts.splitlines():
        assert f'"{line.split()[0]}"' in declared
        assert set(re.findall(r"(\w+) = \"", line)) <= set(re.findall(r"(\w+) += optional\(string", declared))
    assert "models_folder" in CLUSTER and 'variable "models_folder"' in variables


def test_every_alert_has_a_row_and_every_row_an_alert() -> None:
    rules = yaml.safe_load((ROOT / "monitoring" / "rules" / "gristmill.yml").read_text(encoding="utf-8"))
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"] if "alert" in rule}
    assert set(re.findall(r"^\| `(Gristmill\w+)` \|", OPERATIONS, re.MULTILINE)) == alerts


def test_every_exit_code_has_a_row() -> None:
    table = OPERATIONS.split("## The command ended")[1].split("\n## ")[0]
    rows = {int(code) for cell in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in cell.split(",")}
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.GristmillError)]
    assert rows == {0, 130, 143} | {one.exit_code for one in classes}


def test_metrics_and_codes_that_are_named_are_there() -> None:
    metrics = (ROOT / "pipeline" / "observe" / "metrics" / "catalogue.toml").read_text(encoding="utf-8")
    for name in re.findall(r"`gristmill_(\w+)`", BOTH):
        assert name in metrics, name
    codes = (ROOT / "pipeline" / "steps" / "codes.toml").read_text(encoding="utf-8")
    for name in ("constraint_failed", "constraint_leaked", "poison", "not_judged", "rule_not_judged", "duplicate_id"):
        assert f"`{name}`" in OPERATIONS and name in codes


@pytest.mark.parametrize(
    "gpus, memory, parameters, cache, shown",
    [(1, 24, 7.6, 57_344, 59), (1, 48, 7.6, 57_344, 252), (2, 48, 32.5, 262_144, 44), (2, 80, 32.5, 262_144, 156)],
)
def test_the_table_of_gpus_is_its_formula(gpus: int, memory: int, parameters: float, cache: int, shown: int) -> None:
    room = (gpus * memory * 0.92 - 2 * parameters) * 1e9
    assert int(room / (cache * 2000)) == shown
    assert f"| {room / 1e9:.0f} GB | {shown} |" in CLUSTER


def test_the_example_of_costs_is_its_formula() -> None:
    p, most, tokens, rate = 0.9, 2, 150, 2500
    answers = (1 - (1 - p) ** most) / p
    hours = 1e6 * answers * tokens / rate / 3600
    assert f"a = {answers:.1f}, h = {hours:.1f}, cost {hours * 2:.1f}" in CLUSTER
