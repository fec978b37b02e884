"""What Prometheus and Grafana are given: rules that fire when they should, and nothing that no run exports."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.observe.metrics.catalogue import METRICS
from pipeline.steps.codes import CODES

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "monitoring"
RULES = MONITORING / "rules" / "gristmill.yml"
TESTS = sorted((MONITORING / "rules" / "tests").glob("*.yml"))
BOARDS = sorted((MONITORING / "grafana" / "dashboards").glob("*.json"))
PAGE = ROOT / "docs" / "monitoring.md"
PARTS = ("_bucket", "_count", "_sum")
ADDED = {"le"}
"""Labels that Prometheus has besides the catalogue's."""

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian: the package prometheus)"
)


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def boards() -> list[dict[str, Any]]:
    assert BOARDS
    return [json.loads(path.read_text(encoding="utf-8")) for path in BOARDS]


def asked_by_boards() -> list[str]:
    return [target["expr"] for board in boards() for panel in board["panels"] for target in panel.get("targets", ())]


ALERTS = [rule["alert"] for rule in rules() if "alert" in rule]
RECORDED = {rule["record"] for rule in rules() if "record" in rule}
EXPRESSIONS = [*(rule["expr"] for rule in rules()), *asked_by_boards()]


def promtool(*arguments: str) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def selected(expression: str) -> Iterator[tuple[str, str]]:
    """Each metric of gristmill's that an expression names, with what it selects by."""
    yield from re.findall(r"(?<![\w:])(gristmill_\w+)(?:\{([^}]*)\})?", expression)


def in_catalogue(name: str) -> str:
    """The catalogue's name of what an expression names."""
    if name in METRICS:
        return name
    family = next((name.removesuffix(part) for part in PARTS if name.endswith(part)), name)
    assert family in METRICS, f"no run exports {name}"
    assert METRICS[family].type == "histogram", f"{family} is no histogram"
    return family


@needs_promtool
def test_the_configuration_is_one_and_the_rules_are_rules() -> None:
    promtool("check", "config", str(MONITORING / "prometheus.yml"))
    promtool("check", "rules", str(RULES))


@needs_promtool
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_alerts_fire_when_they_should_and_only_then(path: Path) -> None:
    promtool("test", "rules", str(path))


def test_of_each_alert_it_is_tested_that_it_fires_and_that_it_does_not() -> None:
    checks = [
        check for path in TESTS for one in yaml.safe_load(path.read_text())["tests"] for check in one["alert_rule_test"]
    ]
    assert {check["alertname"] for check in checks if check["exp_alerts"]} == set(ALERTS)
    assert {check["alertname"] for check in checks if not check["exp_alerts"]} == set(ALERTS)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_only_what_a_run_exports_is_asked_for_by_labels_that_it_has(expression: str) -> None:
    """In `by (…)`, too: a label that no metric of the expression has would make one group of all."""
    labels: set[str] = set()
    for name, matchers in selected(expression):
        own = {*METRICS[in_catalogue(name)].labels, *ADDED}
        labels |= own
        asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
        assert asked <= own, f"{name} has no label {', '.join(sorted(asked - own))}"
    recorded = set(re.findall(r"[a-z_]+:gristmill_\w+:\w+", expression))
    assert recorded <= RECORDED, f"no rule records {recorded - RECORDED}"
    labels |= {"job", "schema"} if recorded else set()
    assert labels, "it asks for nothing of gristmill"
    grouped = {one.strip() for found in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression) for one in found.split(",")}
    assert grouped <= labels


def test_codes_that_rules_and_boards_look_for_are_codes() -> None:
    named = {code for one in EXPRESSIONS for found in re.findall(r'code=~?"([^"]*)"', one) for code in found.split("|")}
    assert named
    assert named <= set(CODES)


def test_an_alert_says_whom_it_is_about_how_bad_it_is_and_what_to_do() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for rule in rules():
        if "alert" in rule:
            assert rule["labels"]["severity"] in ("warning", "critical")
            assert "$labels.job" in rule["annotations"]["summary"]
            assert len(rule["annotations"]["description"]) > 80
            assert f"| `{rule['alert']}` |" in page


@needs_promtool
def test_what_the_boards_ask_is_promql(tmp_path: Path) -> None:
    """With the variables filled in as Grafana does."""
    filled = [
        re.sub(r"\$__rate_interval", "1m", one).replace("$job", ".*").replace("$schema", ".*")
        for one in asked_by_boards()
    ]
    assert not [one for one in filled if "$" in one]
    made = [{"record": f"panel:{number}", "expr": one} for number, one in enumerate(filled)]
    path = tmp_path / "boards.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "boards", "rules": made}]}), encoding="utf-8")
    promtool("check", "rules", str(path))


def test_boards_can_be_provisioned_and_their_panels_do_not_overlap() -> None:
    for board in boards():
        assert board["uid"]
        assert "id" not in board  # that of another Grafana
        variables = {one["name"] for one in board["templating"]["list"]}
        assert set(re.findall(r"\$\{?([a-z]+)", json.dumps(board["panels"]))) == variables
        numbers = [panel["id"] for panel in board["panels"]]
        assert len(set(numbers)) == len(numbers)
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            assert panel["title"]
            place = panel["gridPos"]
            here = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
            assert max(x for x, _ in here) < 24
            assert not here & taken, panel["title"]
            taken |= here


def test_what_grafana_is_told_is_there() -> None:
    (source,) = yaml.safe_load((MONITORING / "grafana/provisioning/datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    for board in boards():
        (variable,) = [one for one in board["templating"]["list"] if one["type"] == "datasource"]
        assert variable["current"] == {"text": source["name"], "value": source["uid"]}
        assert variable["query"] == source["type"]


def test_the_configuration_gives_rays_names_back_and_keeps_the_jobs_own() -> None:
    """What Prometheus does with it is in tests/integration/test_prometheus.py."""
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text(encoding="utf-8"))
    assert [(MONITORING / name).resolve() for name in config["rule_files"]] == [RULES]
    assert all(one["honor_labels"] for one in config["scrape_configs"])
