"""Whoever makes many Targets in a namespace has no more of the agent's time by that."""

from __future__ import annotations

import pytest

from tests.unit.targets.test_target_quota import Cluster
from vnode.api.clock import Clock
from vnode.api.target_key import TargetKey
from vnode.kube.read_limit import AT_ONCE, ReadTime

pytestmark = pytest.mark.looptime


async def test_targets_of_a_namespace_share_what_reading_may_take_and_no_other_does(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(clock, 20)
    cluster.add("team", "a", "b")
    cluster.add("other", "a")
    cluster.add("", "team", "east")  # one is called like the namespace
    async with cluster.running(monkeypatch) as links:

        def time(namespace: str, name: str) -> ReadTime:
            link = links.get(TargetKey(namespace, name).node_name)
            assert link is not None
            return link.client.read_limiter.time

        time("team", "a").spend(AT_ONCE + 1)
        assert time("team", "b").left() > 0
        others = time("other", "a"), time("", "team"), time("", "east")
        assert [each.left() for each in others] == [0, 0, 0]
        time("", "east").spend(AT_ONCE + 1)
        assert time("", "east").left() > 0
        assert time("", "team").left() == 0
