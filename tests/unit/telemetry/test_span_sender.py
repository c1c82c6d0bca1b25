"""Spans are sent by a thread; a collector that is away costs memory and log lines within bounds."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence

import pytest

from tests.background import running
from vnode.telemetry import metrics, spans
from vnode.telemetry.span_sender import SpanSender
from vnode.telemetry.spans import Attributes, Span, SpanEvent

UID = "3f0e8a4c-6f0b-4d8e-9c1f-0a1b2c3d4e5f"
SPAN = spans.child(UID, "bind", 1.0, 2.0)


def counted() -> dict[str, float]:
    return metrics.values_by(metrics.SPANS, "outcome")


async def test_spans_are_sent_with_what_describes_the_process() -> None:
    loop, sent = asyncio.get_running_loop(), asyncio.Event()
    got: list[tuple[Attributes, list[Span]]] = []

    def export(resource: Attributes, batch: Sequence[Span]) -> str:
        got.append((resource, list(batch)))
        loop.call_soon_threadsafe(sent.set)
        return ""

    sender = SpanSender(export, 1.0)
    async with running(sender.run({"service.name": "vnode"})):
        sender.put(SPAN)
        async with asyncio.timeout(60):
            await sent.wait()

    assert got == [({"service.name": "vnode"}, [SPAN])]


async def test_what_waits_at_the_end_is_sent() -> None:
    got: list[Span] = []

    def export(_resource: Attributes, batch: Sequence[Span]) -> str:
        got.extend(batch)
        return ""

    sender = SpanSender(export, 1.0)
    async with running(sender.run({})):
        await asyncio.sleep(0)  # until it runs
        for _ in range(700):
            sender.put(SPAN)

    assert len(got) == 700


async def test_who_puts_spans_never_waits_and_what_is_too_much_is_counted() -> None:
    before, may_go_on, begun = counted(), threading.Event(), threading.Event()

    def export(_resource: Attributes, _batch: Sequence[Span]) -> str:
        begun.set()
        may_go_on.wait(60)
        return ""

    sender = SpanSender(export, 1.0, most=10)
    async with running(sender.run({})):
        sender.put(SPAN)
        await asyncio.to_thread(begun.wait, 60)
        for _ in range(25):
            sender.put(SPAN)

        may_go_on.set()

    assert counted()["dropped"] - before.get("dropped", 0) == 15


def test_a_span_takes_room_for_its_events_too() -> None:
    """Of a cycle that has found no cluster there are many, and others retry all the time."""
    sender = SpanSender(lambda _resource, _batch: "", 1.0, most=20)
    rejected = tuple(SpanEvent("rejected", 1.0) for _ in range(9))
    large, before = spans.child(UID, "schedule", 1.0, 2.0, events=rejected), counted()
    for _ in range(5):
        sender.put(large)

    assert counted()["dropped"] - before.get("dropped", 0) == 3
    assert sender._next_batch() == [large] * 2
    for _ in range(21):
        sender.put(SPAN)

    assert sender._next_batch() == [SPAN] * 20


def test_a_collector_that_is_away_is_told_once_and_so_is_its_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = ["connection refused", "connection refused", "", "", "no space"]
    before = counted()
    sender = SpanSender(lambda _resource, _batch: answers.pop(0), 1.0)
    with caplog.at_level(logging.INFO, "vnode.telemetry.span_sender"):
        for _ in range(5):
            sender.send({}, [SPAN])

    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING"]
    assert "connection refused" in caplog.text
    assert counted()["unsent"] - before.get("unsent", 0) == 3


def test_an_error_of_the_library_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def export(_resource: Attributes, _batch: Sequence[Span]) -> str:
        raise OSError("broken")

    SpanSender(export, 1.0).send({}, [SPAN])
    assert "OSError: broken" in caplog.text
