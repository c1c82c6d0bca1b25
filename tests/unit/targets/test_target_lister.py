"""What is known of all Targets together."""

from __future__ import annotations

import pytest

from tests import computing
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.targets.target_lister import TargetLister

pytestmark = pytest.mark.looptime


async def test_thousands_of_targets_that_name_one_profile_are_gone_through_once(
    clock: Clock,
) -> None:
    server = APIServer("c1", clock)
    for number in range(5000):
        metadata = {"name": f"t{number}", "namespace": "team-a"}
        server.add(kinds.TARGETS, {"metadata": metadata, "spec": {"clusterProfile": {"name": "p"}}})

    lister = TargetLister(server.client())
    async with links.following(*lister.informers):
        with computing.within(0.06):
            found = lister.nodes_by_profile("") or {}

    assert [len(nodes) for nodes in found.values()] == [5000]
