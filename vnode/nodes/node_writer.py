"""Writes virtual Nodes: creates them, and applies taints, labels and status where these differ.

With Leases, a status that changes nothing is written only every five minutes, as by the kubelet.
A target may change its summary as often as it likes: a burst of its changes is shown at once, and
then the present one every ten seconds (`vnode.runtime.write_limits`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects, resources
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.nodes import labelling, member_taints, virtual, written
from vnode.nodes.desired import DesiredNodes
from vnode.nodes.own_share import OwnShares
from vnode.nodes.written import Written
from vnode.runtime import write_limits
from vnode.runtime.expectations import Expectations
from vnode.runtime.link import Link
from vnode.runtime.write_limits import WriteLimiter

HEARTBEAT: Final = 300.0  # seconds between statuses that change nothing: the kubelet's own default


class NodeWriter:
    """Writes Nodes in the form that is `desired`; `wake` has the Node of a name looked at again.

    With `own_share_of`, which returns what a target has for this cluster beside what others use,
    that is shown as allocatable.
    """

    def __init__(
        self,
        client: Client,
        desired: DesiredNodes,
        *,
        own_share_of: Callable[[Link], Resources | None] | None,
        wake: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._client = client
        self._desired = desired
        self._own_share_of = own_share_of
        self._own_shares = OwnShares()
        self._clock = clock
        self._written: dict[str, Written] = {}  # by node name, of Nodes whose Targets exist
        self._expectations = Expectations(wake)  # of writes to Nodes, by name
        self._limiter: WriteLimiter[str] = WriteLimiter("nodes", write_limits.NODES, clock)

    def pending(self, node: Object) -> bool:
        """Tell whether a Node is older than our last write to it."""
        return self._expectations.pending(objects.name(node), node)

    def forget(self, name: str) -> None:
        """Drop what is known of a Node whose Target is gone."""
        self._written.pop(name, None)
        self._limiter.forget(name)
        self._own_shares.forget(name)
        self._expectations.forget(name)

    async def create(self, wanted: Object) -> Object:
        """Create a Node, and let it be described at once, however often it is deleted."""
        node = await self._client.create(kinds.NODES, wanted)
        self._written[objects.name(node)] = Written(objects.uid(node))
        self._limiter.forget(objects.name(node))
        return node

    async def bring_up_to_date(
        self, node: Object, target: TargetKey, link: Link | None
    ) -> float | None:
        """Write what differs from what the Node is to be; return when to look again."""
        name = target.node_name
        if objects.uid(node) != self._last_written(node).uid:
            await self._recall(name)

        may_write = self._limiter.wait(name) == 0  # asked once, or labels might starve status
        tainted = await self._taint(node, link, may_write=may_write)
        if tainted is None:
            return self._limiter.wait(name)

        described = await self._describe(tainted, target, link, may_write=may_write)
        if described is None:
            return self._limiter.wait(name)

        return await self._report(described, target, link, may_write=may_write)

    async def _recall(self, name: str) -> None:
        """Read what earlier processes wrote to a Node that this one has not written to yet."""
        node = await self._client.get(kinds.NODES, name)
        now, monotonic = self._clock.now(), self._clock.monotonic()
        self._written[name] = written.recall(node, now, monotonic)

    async def _taint(self, node: Object, link: Link | None, *, may_write: bool) -> Object | None:
        """Add our taint, and those of the ManagedCluster; None if these differ and must wait.

        They and their record are one write: an agent that ends in between knows both or neither.
        """
        own, members = virtual.tainted(node), self._desired.member_taints(link)
        present = own or objects.spec(node).get("taints") or []
        merged = member_taints.merge(node, present, members) if members is not None else None
        if merged is None and own is None:
            return node

        if merged is not None and not may_write and own is None:
            return None

        metadata: Object = {}
        taints = present
        if merged is not None and may_write:
            self._limiter.written(objects.name(node))
            taints, record = merged
            metadata["annotations"] = {keys.MEMBER_TAINTS: record or None}

        body = objects.if_unchanged({"metadata": metadata, "spec": {"taints": taints}}, node)
        after = await self._client.patch(kinds.NODES, objects.name(node), body)
        return self._expect(node, after)

    async def _describe(
        self, node: Object, target: TargetKey, link: Link | None, *, may_write: bool
    ) -> Object | None:
        """Apply labels and annotations, once the target's summary is known.

        None if they differ and must wait.
        """
        if link is None or not link.summaries.synced.is_set():
            return node

        wanted = await self._desired.description(node, target, link)
        last, fields = self._last_written(node), written.described(wanted)
        left_over = labelling.left_over(node, objects.labels(wanted), link.labels_excluded)
        if last.description == fields and written.includes(node, wanted) and not left_over:
            return node

        if not may_write:
            return None

        self._limiter.written(target.node_name)
        if left_over:
            body = {"metadata": {"labels": left_over}}
            await self._client.patch(kinds.NODES, target.node_name, body)

        after = await self._client.apply(kinds.NODES, wanted)
        last.description = fields
        return self._expect(node, after)

    async def _report(
        self, node: Object, target: TargetKey, link: Link | None, *, may_write: bool
    ) -> float:
        """Apply the status, at least as often as a kubelet does."""
        name = target.node_name
        wanted = await self._desired.status(node, target, link)
        shown_for = self._show_share(name, wanted, link)
        last, fields = self._last_written(node), written.offered(wanted)
        now = self._clock.monotonic()
        due = last.status_at + HEARTBEAT - now
        is_same = last.offer == fields and written.declares(node, wanted, last)
        if due > 0 and is_same and virtual.has_status(node, wanted):
            return min(due, shown_for)

        if not may_write:
            return self._limiter.wait(name)

        self._limiter.written(name)
        body = {"metadata": {"name": name}, "status": wanted}
        self._expect(node, await self._client.apply(kinds.NODES, body, subresource="status"))
        last.offer, last.status_at = fields, now
        last.declared = written.declared(wanted)
        return min(HEARTBEAT, shown_for)

    def _show_share(self, name: str, wanted: Object, link: Link | None) -> float:
        """Leave what others use out of a status, where that is asked for and known.

        Return the seconds until other amounts may be shown.
        """
        share = self._own_share_of(link) if self._own_share_of and link is not None else None
        if share is None:
            return math.inf

        amounts, shown_for = self._own_shares.show(name, share, self._clock.monotonic())
        wanted["allocatable"] = virtual.offered(resources.format_list(amounts))
        return shown_for

    def _expect(self, before: Object, after: Object) -> Object:
        """Return the Node after a write; wait for the store before the next reconciliation."""
        self._expectations.expect(objects.name(after), before, after)
        return after

    def _last_written(self, node: Object) -> Written:
        return self._written.get(objects.name(node)) or Written("")
