"""What is known of all Targets together."""

from __future__ import annotations

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.unit.scheduling import costs
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.targets.target_lister import TargetLister

pytestmark = pytest.mark.looptime


async def cost(targets: int, clock: Clock) -> int:
    """Return how many bytecodes it takes to go through Targets that name one profile."""
    server = APIServer("c1", clock)
    for number in range(targets):
        metadata = {"name": f"t{number}", "namespace": "team-a"}
        server.add(kinds.TARGETS, {"metadata": metadata, "spec": {"clusterProfile": {"name": "p"}}})

    lister = TargetLister(server.client())
    async with links.following(*lister.informers):
        found = lister.nodes_by_profile("") or {}
        assert [len(nodes) for nodes in found.values()] == [targets]
        return costs.bytecodes(lambda: lister.nodes_by_profile(""))


async def test_thousands_of_targets_that_name_one_profile_are_gone_through_once(
    clock: Clock,
) -> None:
    """Twice as many take twice as long, and not four times."""
    assert await cost(400, clock) < 2.1 * await cost(200, clock)
