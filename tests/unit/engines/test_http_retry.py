"""What servers ask to wait, and who waits."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from pipeline.engines.http_retry import MOST_BACKOFF, Pace, backoff, is_transient, retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0 "}, 0.0),
        ({"retry-after": format_datetime(NOW.replace(minute=2), usegmt=True)}, 120.0),
        ({"retry-after": "Sunday, 01-Mar-26 12:00:30 GMT"}, 30.0),  # the obsolete form of RFC 850
        ({"retry-after": format_datetime(NOW.replace(year=2020), usegmt=True)}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Sun, 99 Foo 2026"}, None),
        ({"retry-after": "Sun, 01 Mar 99999999999 12:00:00 GMT"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW.timestamp()) == seconds


def test_backoff_doubles_under_a_bound_and_is_spread() -> None:
    for tries in (1, 2, 3, 50, 2000):
        waits = [backoff(tries) for _ in range(200)]
        assert min(waits) >= 0.0 and max(waits) <= min(MOST_BACKOFF, 0.5 * 2.0 ** min(tries - 1, 60))
        assert max(waits) > 2 * min(waits)


def test_what_may_be_asked_again() -> None:
    assert all(map(is_transient, (408, 429, 500, 502, 503, 504, 529)))
    assert not any(map(is_transient, (200, 301, 400, 401, 403, 404, 413, 422, 501, 505)))


@pytest.mark.asyncio
async def test_requests_go_out_evenly_at_the_rate() -> None:
    pace, times = Pace(per_minute=600), []

    async def one() -> None:
        await pace.turn()
        times.append(time.monotonic())

    await asyncio.gather(*(one() for _ in range(8)))
    assert times[-1] - times[0] >= 0.65  # seven gaps of 0.1 s, less the grain of clocks


@pytest.mark.asyncio
async def test_a_pause_that_one_was_told_holds_for_all_and_is_a_meant_wait() -> None:
    pace = Pace(None)
    began = time.monotonic()
    pace.pause(0.3)
    pace.pause(0.1)  # a shorter one shortens nothing
    waiting = asyncio.create_task(pace.turn())
    await asyncio.sleep(0.05)
    assert pace.waiting == 1
    await waiting
    assert time.monotonic() - began >= 0.3
    assert pace.waiting == 0
