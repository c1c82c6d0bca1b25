"""Listeners, and how those of a period end with it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import Context

from vnode.api.listeners import Listeners, subscription_scope


def test_listeners_are_called_in_the_order_of_their_addition() -> None:
    heard: list[str] = []
    there: Listeners[str] = Listeners()
    there.add(lambda what: heard.append(f"first {what}"))
    there.add(lambda what: heard.append(f"second {what}"))
    there.call("news")
    assert heard == ["first news", "second news"]


def test_what_is_added_within_a_period_is_gone_at_its_end_and_all_else_stays() -> None:
    heard: list[str] = []
    there: Listeners[[]] = Listeners()
    there.add(lambda: heard.append("before"))
    with subscription_scope():
        there.add(lambda: heard.append("within"))
        there.call()

    there.add(lambda: heard.append("after"))
    assert heard == ["before", "within"]
    heard.clear()
    there.call()
    assert heard == ["before", "after"]


async def test_a_task_adds_to_the_period_that_it_was_started_in_and_to_none_after_it() -> None:
    there: Listeners[[]] = Listeners()
    over = asyncio.Event()

    async def work() -> None:
        there.add(lambda: None)
        await over.wait()
        there.add(lambda: None)

    with subscription_scope():
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        assert len(there) == 1

    assert len(there) == 0
    over.set()
    await task
    assert len(there) == 0


def test_what_a_listener_adds_belongs_to_its_period_whoever_calls_it() -> None:
    links: Listeners[Listeners[[]]] = Listeners()
    ours: Listeners[[]] = Listeners()
    theirs: Listeners[[]] = Listeners()
    links.add(lambda link: link.add(lambda: None))
    with subscription_scope():
        links.add(lambda link: link.add(lambda: None))
        links.call(ours)  # from inside
        outside = _in_no_period(links, theirs)

    assert outside == 2
    assert (len(ours), len(theirs)) == (1, 1)


def _in_no_period(links: Listeners[Listeners[[]]], link: Listeners[[]]) -> int:
    Context().run(links.call, link)
    return len(link)


def test_a_period_ends_while_another_goes_on() -> None:
    there: Listeners[[]] = Listeners()
    with subscription_scope():
        there.add(lambda: None)
        with subscription_scope():
            there.add(lambda: None)

        there.add(lambda: None)
        assert len(there) == 2

    assert len(there) == 0


def test_a_period_keeps_nothing_alive_that_others_have_dropped() -> None:
    with subscription_scope():
        there: Listeners[[]] = Listeners()
        there.add(lambda: None)
        dropped = weakref.ref(there)
        del there
        gc.collect()
        assert dropped() is None


def test_a_listener_that_adds_another_does_not_have_it_called_at_once() -> None:
    heard: list[str] = []
    there: Listeners[[]] = Listeners()
    there.add(lambda: there.add(lambda: heard.append("late")))
    there.call()
    assert heard == []
    there.call()
    assert heard == ["late"]
