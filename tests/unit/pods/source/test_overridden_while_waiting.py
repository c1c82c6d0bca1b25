"""Override policies that come, change and go while pods wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.apiserver import links
from tests.unit.overrides.making import policy
from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.source.changed_pods import BACKOFF, SLOW, Bindings, pod_of, shown
from tests.unit.pods.source.test_overridden_pods import Lazy, overrides_of
from tests.unit.pods.targets import (
    LATENCY,
    Target,
    rejects,
    reserves,
)
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Unreachable
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def overriding(clock: Clock, *targets: Target) -> AsyncIterator[tuple[SourceCluster, Lazy]]:
    lazy = Lazy()
    source = SourceCluster(clock, *targets, overrides=lazy)
    lazy.real = overrides_of(source.server)
    source.follow(lazy.real)
    async with links.following(*lazy.real.informers), source.running():
        yield source, lazy


def mirror(registry: str = "mirror.example") -> Object:
    return policy({"image": [{"registry": registry}]}, namespace="default")


async def test_a_policy_that_comes_changes_and_goes_is_that_of_a_pod_that_waits(
    clock: Clock,
) -> None:
    target = Target("c2", clock, rejects)
    async with overriding(clock, target) as (source, _):
        pod_of(source)
        await source.until_said("p", "no room here")
        rule = mirror()
        wanted = ("mirror.example/old", "other.example/old", "old")
        source.server.add(kinds.OVERRIDE_POLICIES, rule)
        await asyncio.sleep(BACKOFF)
        assert shown(target.candidate("p"))["image"] == wanted[0]

        def change(obj: Object) -> None:
            obj["spec"] = mirror("other.example")["spec"]

        source.server.change(kinds.OVERRIDE_POLICIES, "mirror", "default", change)
        await asyncio.sleep(BACKOFF)
        assert shown(target.candidate("p"))["image"] == wanted[1]
        source.server.remove(kinds.OVERRIDE_POLICIES, "mirror", "default")
        await asyncio.sleep(BACKOFF)
        assert shown(target.candidate("p"))["image"] == wanted[2]
        assert target.asked("create") == 4


@pytest.mark.parametrize("moment", [0.001 * step for step in range(0, 40, 3)])
async def test_whenever_a_policy_comes_no_pod_runs_without_it_that_was_bound_later(
    clock: Clock, moment: float
) -> None:
    target = Target("c2", clock)
    async with overriding(clock, target) as (source, lazy):
        bindings, known = Bindings(source), []
        lazy.real.subscribe(lambda _key: known.append(clock.monotonic()))
        source.server.fail(None, verb="create", subresource="binding", delay=SLOW)
        pod_of(source)
        await asyncio.sleep(moment)
        source.server.add(kinds.OVERRIDE_POLICIES, mirror())
        await source.until_bound("p")
        ((_, candidate),) = bindings.found
        asked = source.bound["p"] - SLOW - 2 * LATENCY
        if known and known[0] < asked:  # not of the moment before
            assert shown(candidate)["image"] == "mirror.example/old"


async def test_a_policy_that_cannot_be_applied_takes_the_candidate_away(clock: Clock) -> None:
    target = Target("c2", clock, rejects)
    async with overriding(clock, target) as (source, _):
        pod_of(source)
        await source.until_said("p", "no room here")
        source.server.add(kinds.OVERRIDE_POLICIES, policy({"image": "x"}, namespace="default"))
        await source.until_said("p", "overridepolicy/default/mirror is not accepted")
        assert target.find("p") is None


async def test_while_policies_are_not_known_a_candidate_stays_and_does_not_win(
    clock: Clock,
) -> None:
    target = Target("c2", clock, rejects)
    async with overriding(clock, target) as (source, lazy):
        pod_of(source)
        await source.until_said("p", "no room here")
        before, real = objects.uid(target.candidate("p")), lazy.real

        class Unknown:
            def choose(self, _pod: Object, _link: Any) -> Any:
                raise Unreachable("not known yet")

        lazy.real = Unknown()
        reserves(target, target.candidate("p"))
        await asyncio.sleep(BACKOFF)
        assert source.bindings == []
        lazy.real = real
        await source.until_bound("p")
        assert objects.uid(target.candidate("p")) == before
