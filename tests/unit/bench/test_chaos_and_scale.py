"""What `bench.chaos` and `bench.scale` conclude from: planned killings, outcomes compared, formulas."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil

from bench.chaos.herd import Herd, kill
from bench.chaos.judge import Row, answers, different, repeated
from bench.chaos.story import KINDS, plan_round
from bench.scale_paper import Measured, Target, lines
from bench.scale_series import Point, Series

MEASURED = Measured(
    worker_micros_per_document=1000,
    control_begin_micros=500,
    control_report_micros=500,
    driver_micros_per_unit=5000,
    daemons_micros_per_unit=500,
    prepare_wall_micros_per_unit=2000,
    driver_bytes_per_unit=4000,
    scan_rows_per_second=500_000,
    scan_bytes_per_unit=200,
    list_wall_micros_per_unit=20,
    manifest_bytes_per_unit=700,
    commit_wall_micros_per_unit=100,
    files_per_unit=1.5,
)


def test_a_seed_plans_the_same_killings_and_turns_bring_all_kinds_first() -> None:
    for placement, kinds in KINDS.items():
        numbers = range(placement == "actors", 2 * len(kinds), 2)
        plans = [plan_round(number, placement, 10.0, kinds) for number in numbers]
        assert plans == [plan_round(number, placement, 10.0, kinds) for number in numbers]
        assert {plan.killings[0].kind for plan in plans} == set(kinds)
        assert all(0 < one.after < (1 if one.working else 10) for plan in plans for one in plan.killings)


def test_outcomes_that_changed_were_lost_or_made_up_are_found_and_poison_is_told_apart() -> None:
    good, other = Row("valid", "receipt@1", "{}", False), Row("degraded", "receipt@1", "{}", False)
    poison = Row("rejected", "receipt@1", "null", True)
    peace = {"same": good, "changed": good, "lost": good, "called poison": good}
    found = {"same": good, "changed": other, "made up": good, "called poison": poison}
    assert different(found, peace) == ["changed", "lost", "made up"]
    assert different(peace, peace) == []


def test_answers_beyond_those_of_the_undisturbed_run_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    folder.mkdir()
    line = {"plan": "p@1", "digest": "x", "completion": {"text": ""}}
    both = [json.dumps({**line, "key": key}) for key in ("a", "b", "b", "b")]
    started = json.dumps({**line, "key": "", "completion": None})
    (folder / "1.jsonl").write_text("\n".join([started, *both, '{"key": "c", "pl']))
    found = answers(tmp_path)
    assert found == {"p@1 a": 1, "p@1 b": 3}
    assert repeated(found, {"p@1 a": 1, "p@1 b": 1}) == {"prompts": 1, "answers": 2}


def test_orphans_belong_to_the_herd_and_others_do_not() -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    herd = Herd()
    leave = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    subprocess.run([sys.executable, "-c", leave], check=True)
    until = time.monotonic() + 10
    while not (orphans := herd.all()) and time.monotonic() < until:
        time.sleep(0.05)
    assert len(orphans) == 1
    assert kill(orphans[0])
    assert herd.end() == []
    assert not orphans[0].is_running()
    assert other.poll() is None
    other.kill()
    other.wait()


def test_formulas_follow_the_measurement_and_name_the_first_to_saturate() -> None:
    plain = {line.part: line for line in lines(MEASURED, Target())}
    slower = {line.part: line for line in lines(replace(MEASURED, control_begin_micros=1000), Target())}
    assert plain["control actor"].needs == 2000 * 500e-6 + 100 * 500e-6
    assert slower["control actor"].needs > 1.9 * plain["control actor"].needs
    assert {part for part in plain if plain[part] != slower[part]} == {"control actor"}
    larger = {line.part: line for line in lines(MEASURED, Target(unit_documents=10_000))}
    turned = [part for part in plain if "unit_documents" in plain[part].turn]
    assert len(turned) >= 5
    assert all(abs(larger[part].share * 10 - plain[part].share) < 1e-9 for part in turned)
    shares = [line.share for line in lines(MEASURED, Target())]
    assert shares == sorted(shares, reverse=True)


def test_series_keep_what_a_process_was_before_it_had_its_title() -> None:
    me = psutil.Process()
    series = Series(lambda: [me], driver=me.pid, seconds=0.02).start()
    until = time.monotonic() + 10
    while len(series.points.get(("driver", me.pid), [])) < 4 and time.monotonic() < until:
        time.sleep(0.02)
    series.stop()
    points = series.of("driver")[0]
    assert all(isinstance(point, Point) and point.private > 1 for point in points)
    assert series.cpu_between("driver", points[0].at, points[-1].at) == points[-1].cpu - points[0].cpu
    assert series.to_json(points[0].at)[0]["role"] == "driver"
