"""Does the steps of a replacement, and says each as kubectl would.

The agent of the source does the rest: it ends pods that are evicted, and once the Target has
another cluster, it deletes those whose delegates that one lacks, for their owners to replace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError, NotFound
from vnode.api.identity import Identity
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.cli import tables, waiting
from vnode.cli.drain import unschedulable
from vnode.cli.remove import remote_cleanup
from vnode.cli.remove.remote_cleanup import RemoteObjects
from vnode.cli.remove.report import RemovalReport, counted
from vnode.cli.replace.steps import ReplacementStep
from vnode.insight.target_clients import Connect
from vnode.kube.client import Client
from vnode.pods.source import unreserved_pods
from vnode.targets import cluster_identity

SECONDS: Final = 60.0  # for each step but the drain
_LOST_PER_SECOND: Final = 10  # pods; the agent deletes them at least that fast

Do = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Replacement:
    """Puts the cluster `wanted`, a UID, in the place of the one that a Target is.

    `former` connects to that one with the Target's credentials; `new` is a client for the wanted
    one. `drain`, `switch` and `end_source` are other commands' work: the last one returns nothing
    of ours in the former cluster, or reports it.
    """

    source: Client
    new: Client
    target: Object
    key: TargetKey
    me: Identity
    wanted: str
    former: Connect
    drain: Do
    switch: Do
    end_source: Do
    report: RemovalReport
    uncordons: bool = True
    lost: bool = False
    dry_run: bool = False
    seconds: float = SECONDS

    @property
    def name(self) -> str:
        """The Target as kubectl names it."""
        return f"{tables.target_kind(self.target).kind.lower()}/{self.key.name}"

    @property
    def remote(self) -> RemoteObjects:
        """What this source has in the former cluster, by this Target."""
        return RemoteObjects(self.target, self.me, frozenset({objects.key(self.target)}))

    async def run(self, steps: tuple[ReplacementStep, ...]) -> None:
        """Do the steps in order; each may be done again after it was broken off."""
        if self.lost:
            self._warn_of_bare_pods(await self.pods())

        does = {
            ReplacementStep.DRAIN: self._empty,
            ReplacementStep.CLEAN_UP: self._clean_up,
            ReplacementStep.SWITCH: self._switch,
            ReplacementStep.AWAIT_CONNECTION: self._await_connection,
            ReplacementStep.UNCORDON: self._uncordon,
            ReplacementStep.AWAIT_OWNERS: self._await_owners,
            ReplacementStep.END_SOURCE: self.end_source,
        }
        for step in steps:
            await does[step]()

    async def pods(self) -> Objects:
        """List the pods on the virtual node whose delegates count: not those of DaemonSets."""
        field_selector = f"spec.nodeName={self.key.node_name}"
        found = await self.source.list(kinds.PODS, field_selector=field_selector)
        owners = [(objects.controller_reference(pod) or {}).get("kind") for pod in found]
        return [pod for pod, owner in zip(found, owners, strict=True) if owner != "DaemonSet"]

    def _warn_of_bare_pods(self, pods: Objects) -> None:
        bare = [objects.key(pod) for pod in pods if objects.controller_reference(pod) is None]
        if bare:
            self.report.say(
                "Warning: pods that declare no controller were lost with the cluster, and nobody "
                f"replaces them: {', '.join(sorted(bare))}"
            )

    async def _empty(self) -> None:
        """Drain until no pod is bound: one may have been on its way when the node was cordoned."""
        tried: set[str] = set()
        while True:
            bound = set(map(objects.uid, await self.pods()))
            if tried and bound <= tried:
                return

            await self.drain()
            tried |= bound | {""}

    async def _clean_up(self) -> None:
        """Delete candidates and copies, of pods that wait for another target; then see again."""
        if self.dry_run:
            self.report.say(f"{self.name}: podchaperons and copied objects deleted (dry run)")
            return

        await remote_cleanup.delete(
            self.source, self.remote, self.seconds, self.report, connect=self.former
        )
        if await self.pods():
            await self._empty()

    async def _switch(self) -> None:
        if self.dry_run:
            self.report.say(f"{self.name} configured: the cluster is {self.wanted} (dry run)")
            return

        await self.switch()

    async def _await_connection(self) -> None:
        """Wait until the Target is the wanted cluster, and ready."""
        if self.dry_run:
            return

        kind, namespace = tables.target_kind(self.target), self.key.namespace or None
        is_met, seen = await waiting.until_one(
            self.source, kind, self.key.name, namespace, self._is_connected, self.seconds
        )
        if not is_met:
            message = (objects.condition(seen, "Ready") or {}).get("message") or "no word of it yet"
            raise ConfigError(
                f"timed out waiting for the condition on {self.name}: {message}. Once that is put "
                "right, run the same again; it goes on from here"
            )

        self.report.say(f"{self.name} condition met")

    def _is_connected(self, target: Object) -> bool:
        return objects.is_ready(target) and cluster_identity.recorded(target) == self.wanted

    async def _uncordon(self) -> None:
        with suppress(NotFound):  # the agent is about to make it
            node = await self.source.get(kinds.NODES, self.key.node_name)
            if self.dry_run or not self.uncordons:
                kept = "uncordoned (dry run)" if self.uncordons else "stays cordoned, as requested"
                self.report.say(f"node/{self.key.node_name} {kept}")
            else:
                await unschedulable.set_cordon(self.source, node, False, self.report.say)

    async def _await_owners(self) -> None:
        """Wait until the agent has deleted the pods whose delegates went with the cluster."""
        gone = await self._without_delegate()
        if not gone:
            return

        if self.dry_run:
            count = counted(gone, "pod")
            self.report.say(f"{count} deleted, for their owners to replace (dry run)")
            return

        left = await waiting.until_gone(
            self.source,
            kinds.PODS,
            lambda pod: objects.uid(pod) in gone,
            self.seconds + len(gone) / _LOST_PER_SECOND,
            field_selector=f"spec.nodeName={self.key.node_name}",
        )
        self.report.say(f"{counted(len(gone) - len(left), 'pod')} deleted: the cluster is gone")
        if left:
            self.report.left.append(
                f"{counted(left, 'pod')} of the former cluster (first: {objects.key(left[0])}): "
                "see vnode explain pod"
            )

    async def _without_delegate(self) -> frozenset[str]:
        """Return the UIDs of pods that ran, or were to run, in the former cluster.

        Pods come first: one that the new cluster was sent has its chaperon before it is bound.
        """
        pods = filter(_ended_with_it, await self.pods())
        namespace, selector = self.key.namespace or None, self.me.selector
        chaperons = await self.new.list(kinds.POD_CHAPERONS, namespace, label_selector=selector)
        held = {objects.labels(chaperon).get(keys.PARENT_UID) for chaperon in chaperons}
        return frozenset(map(objects.uid, pods)) - held


def _ended_with_it(pod: Object) -> bool:
    """Tell whether a pod without a chaperon goes: one that has ended, or not begun, stays."""
    if objects.is_terminating(pod):
        return True

    return not objects.is_finished(pod) and not unreserved_pods.is_unreserved(pod)
