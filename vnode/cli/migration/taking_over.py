"""Takes over what a cluster has sent to targets under another name, or none.

The UID of the original decides: what was made of an object of this cluster gets its name. It gets
no UID of the cluster, since that is on what vnode itself has named (`identity.is_chaperon_of`).

Candidates that nobody has chosen are deleted: the pod gets new ones. The credentials are those of
the Targets.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict, NotFound, VnodeError
from vnode.api.identity import is_in_namespace_of_parent, parent_key
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli.remove.admiralty_finalizers import COPIED
from vnode.cli.remove.report import RemovalReport, counted
from vnode.insight.target_clients import Connect, connected
from vnode.kube.client import Client
from vnode.targets import model


@dataclass(slots=True)
class _TakeOver:
    """Takes over what one target has of this cluster as `former`, and is to have as `name`."""

    local: Client
    remote: Client
    target: Object
    former: str
    name: str
    taken: Counter[str] = field(default_factory=Counter)
    candidates: int = 0
    others: int = 0

    async def run(self) -> None:
        namespace = objects.namespace(self.target) or None
        selector = f"{keys.PARENT_CLUSTER_NAME}={self.former}"
        for kind in (kinds.POD_CHAPERONS, *COPIED):
            for child in await self.remote.list(kind, namespace, label_selector=selector):
                original = await self._original(kind, child)
                if original is None:
                    self.others += 1
                elif kind is kinds.POD_CHAPERONS:
                    await self._chaperon(child, original)
                else:
                    await self._label(kind, child)

    async def _original(self, kind: Kind, child: Object) -> Object | None:
        """Return the object of this cluster that a chaperon or copy was made of."""
        if not is_in_namespace_of_parent(child):
            return None

        parent = kinds.PODS if kind is kinds.POD_CHAPERONS else kind
        namespace, name = objects.split_key(parent_key(child))
        try:
            found = await self.local.get(parent, name, namespace)
        except NotFound:
            return None

        return found if objects.uid(found) == objects.labels(child)[keys.PARENT_UID] else None

    async def _chaperon(self, chaperon: Object, proxy: Object) -> None:
        if objects.node_name(proxy) == model.key_of(self.target).node_name:
            await self._label(kinds.POD_CHAPERONS, chaperon)
        else:
            await self.remote.discard(kinds.POD_CHAPERONS, chaperon)
            self.candidates += 1

    async def _label(self, kind: Kind, child: Object) -> None:
        name = {keys.PARENT_CLUSTER_NAME: self.name}
        if kind is kinds.POD_CHAPERONS:
            body = {"metadata": {"uid": objects.uid(child), "labels": name}}
            await self.remote.patch(kind, objects.name(child), body, objects.namespace(child))
        else:  # Sources may update copies, not patch them
            metadata = {**objects.metadata(child), "labels": {**objects.labels(child), **name}}
            head = {"apiVersion": kind.api_version, "kind": kind.kind}
            await self.remote.replace(kind, {**child, **head, "metadata": metadata})

        self.taken[kind.kind] += 1

    def lines(self) -> list[str]:
        """List what was done."""
        where = f"target {model.key_of(self.target)}"
        taken = [counted(count, kind) for kind, count in sorted(self.taken.items())]
        found = [f"{where}: took over {', '.join(taken) or 'nothing'}"]
        if self.candidates:
            found.append(f"{where}: deleted {counted(self.candidates, 'candidate')}")

        if self.others:
            what = counted(self.others, "object")
            whose = f"of the name {self.former}" if self.former else "without a name"
            found.append(f"{where}: left {what} {whose}, of other sources or without parent")

        return found


async def migrate(
    client: Client,
    name: str,
    report: RemovalReport,
    connect: Connect = connected,
    *,
    former: str = "",
) -> None:
    """Take over, in each target, what came from this cluster; what fails is `left` in the report.

    `former` is the name under which it came, "" for none.

    An object that somebody changes meanwhile is left for the next call.
    """
    targets = await client.list(kinds.TARGETS) + await client.list(kinds.CLUSTER_TARGETS)
    for target in targets:
        try:
            async with connect(client, target) as remote:
                work = _TakeOver(client, remote, target, former, name)
                try:
                    await work.run()
                finally:
                    for line in work.lines():
                        report.say(line)
        except Conflict as error:
            report.left.append(f"target {model.key_of(target)}: {error}; run this again")
        except VnodeError as error:
            report.left.append(f"target {model.key_of(target)}: {error}")
