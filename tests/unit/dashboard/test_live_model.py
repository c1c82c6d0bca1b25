"""How often views are made, whatever happens and however many look."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.apiserver.links import link_to
from tests.apiserver.server import APIServer
from tests.unit.dashboard.test_pages import pod
from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.dashboard import view_model
from vnode.dashboard.live_model import LiveModel, Stores
from vnode.dashboard.paced_turns import PacedTurns
from vnode.dashboard.view_model import ModelInputs
from vnode.kube.informer import Informer
from vnode.runtime.links import Links

pytestmark = pytest.mark.looptime


@pytest.fixture
async def links(clock: Clock) -> Links:
    """Return the links, of which there is one."""
    links = Links()
    target = TargetKey("default", "c2")
    links.add(link_to(APIServer("c2", clock), target, Identity("c1", "uid-of-c1"), clock))
    return links


@pytest.fixture
async def model(clock: Clock, links: Links) -> LiveModel:
    """Return a live model of two pods, one of which is bound."""
    client = APIServer("c1", clock).client()
    spec = {"schedulerName": keys.PROXY_SCHEDULER, "containers": []}
    bound = {**spec, "nodeName": "admiralty-default-c2"}
    pods = [{**pod("web"), "spec": bound}, {**pod("new"), "spec": spec}]
    stores = Stores((), (), Informer(client, kinds.NODES), lambda: pods)
    return LiveModel(client, "c1", stores, links, agent_namespace="vnode", clock=clock)


async def test_all_who_asked_before_a_view_was_made_get_it_though_things_change_all_the_time(
    model: LiveModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0

    def make(inputs: ModelInputs, now: Any) -> Any:
        nonlocal made
        made += 1
        model.notify()
        return view_model.ViewModel("c1", now, (), (), (), None)  # type: ignore[arg-type]

    monkeypatch.setattr(view_model, "make", make)
    await asyncio.gather(*(model.view() for _ in range(64)))
    assert made == 1

    await model.view()
    assert made == 2  # something has changed since the first was made


async def test_candidates_are_looked_up_for_pods_that_wait_only(
    model: LiveModel, links: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    [link] = links

    def candidates(pods: dict[str, str]) -> tuple[()]:
        asked.extend(pods.values())
        return ()

    monkeypatch.setattr(link, "candidates", candidates)
    view = await model.view()
    assert len(view.pods) == 2
    assert asked == ["default/new"]


async def test_what_is_computed_takes_a_fifth_of_the_time_at_most(clock: Clock) -> None:
    turns, worked = PacedTurns(clock), 0.0

    async def work() -> None:
        nonlocal worked
        async with turns.turn():
            await clock.sleep(0.3)
            worked += 0.3

    begun = clock.monotonic()
    await asyncio.gather(*(work() for _ in range(20)))
    await work()
    assert worked == pytest.approx(6.3)
    assert clock.monotonic() - begun == pytest.approx(6.3 + 20 * 1.2)


async def test_a_turn_that_fails_leaves_the_next_one(clock: Clock) -> None:
    turns = PacedTurns(clock)
    with pytest.raises(ZeroDivisionError):
        async with turns.turn():
            raise ZeroDivisionError

    async with turns.turn():
        pass
