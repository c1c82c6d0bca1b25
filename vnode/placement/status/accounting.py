"""Makes the status of a policy from the counts of its workloads, and from what targets have.

`accounts` compares counts with plans, pure. What it cannot know, where the pods wait that are not
bound yet and what clusters weigh, is looked up here, a few pods at a time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, Protocol

from vnode.api.objects import Object
from vnode.placement.status import accounts
from vnode.placement.status.accounts import WorkloadAccount
from vnode.placement.status.counting import WorkloadTally
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PlannedNode
from vnode.runtime.links import Links

_BATCH: Final = 200  # pods that are looked for in targets at a time


class ClosedClusters(Protocol):
    """Knows where moves of workloads were in vain."""

    def closed(self, workload: str, group_by: str) -> Mapping[str, datetime]:
        """Return until when no pod of a workload is moved to the nodes where that was in vain."""

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the key of a policy when that is another for one of its workloads."""


class Accounting:
    """Makes accounts; `weights` returns what each virtual node weighs for a workload (by its key)
    whose policy has no weights, None if it is not known."""

    def __init__(
        self,
        links: Links,
        weights: Callable[[Policy, str], Mapping[str, int] | None],
        moves: ClosedClusters | None = None,
    ) -> None:
        self._links = links
        self._weights = weights
        self._moves = moves

    async def status(
        self,
        policy: Policy | None,
        tallies: Mapping[str, WorkloadTally],
        nodes: list[PlannedNode],
    ) -> Object:
        """Return the status of a policy but for its conditions."""
        found: list[WorkloadAccount] = []
        if policy is not None and tallies:
            for workload, tally in accounts.largest(tallies):
                found.append(await self._workload(policy, workload, tally, nodes))

        return accounts.status(tallies, found)

    async def _workload(
        self, policy: Policy, workload: str, tally: WorkloadTally, nodes: list[PlannedNode]
    ) -> WorkloadAccount:
        candidates = await self._candidates(dict(tally.unbound))
        await asyncio.sleep(0)  # a plan of thousands of pods takes milliseconds
        return accounts.account(
            policy,
            workload,
            tally,
            nodes,
            candidates=candidates,
            weights=self._weights(policy, workload),
            closed=self._moves.closed(workload, policy.group_by) if self._moves else {},
        )

    async def _candidates(self, unbound: Mapping[str, str]) -> Counter[str]:
        """Count the candidates of these pods by virtual node."""
        found = Counter[str]()
        links = list(self._links)
        for number, (key, uid) in enumerate(unbound.items(), 1):
            for link in links:
                if link.candidate(key, uid) is not None:
                    found[link.node_name] += 1

            if number % _BATCH == 0:
                await asyncio.sleep(0)

        return found
