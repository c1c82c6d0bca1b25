"""What candidates show of a target: an obstacle, for a while, until one shows the opposite."""

from __future__ import annotations

import pytest

from vnode.runtime.start_record import LASTING, WEBHOOK, StartRecord


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def record(calls: list[str]) -> StartRecord:
    found = StartRecord()
    found.changed.add(lambda: calls.append("changed"))
    return found


def reason(record: StartRecord, now: float) -> str:
    found = record.obstacle(now)
    return found.reason if found else ""


def test_silence_counts_while_pods_are_tried_and_ends_without(
    record: StartRecord, calls: list[str]
) -> None:
    record.on_silence(0.0, 30.0)
    assert reason(record, 31.0) == "NoAnswer"
    assert record.seconds_left(31.0) == LASTING - 1
    record.on_silence(90.0, 120.0)
    assert calls == ["changed"]
    assert reason(record, 30.0 + LASTING) == "NoAnswer"
    assert not reason(record, 120.0 + LASTING)
    assert record.seconds_left(120.0 + LASTING) is None
    record.on_silence(400.0, 430.0)
    assert calls == ["changed", "changed"]


def test_a_target_that_decided_about_another_pod_meanwhile_is_not_silent(
    record: StartRecord,
) -> None:
    record.on_decision(10.0)
    record.on_silence(0.0, 30.0)
    assert not reason(record, 31.0)
    record.on_silence(11.0, 41.0)
    assert reason(record, 42.0) == "NoAnswer"


def test_a_decision_ends_it(record: StartRecord, calls: list[str]) -> None:
    record.on_silence(0.0, 30.0)
    record.on_decision(40.0)
    record.on_decision(41.0)
    assert not reason(record, 41.0)
    assert calls == ["changed", "changed"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f'{WEBHOOK} "dead.example.com": connection refused', "WebhookFailing"),
        ('admission webhook "x" denied the request: no', ""),
        ("exceeded quota: q", ""),
    ],
)
def test_only_a_webhook_that_does_not_answer_refuses_every_pod(
    record: StartRecord, message: str, expected: str
) -> None:
    record.on_refusal(message, 5.0)
    assert reason(record, 6.0) == expected


def test_whether_anybody_works_there_is_seen_anew_once_the_agent_is_silent(
    record: StartRecord,
) -> None:
    record.on_decision(1.0)
    assert record.is_shown
    record.fell_silent()
    assert not record.is_shown
    record.on_decision(2.0)
    assert record.is_shown
