"""Lists the Targets and ClusterTargets that exist, whether they work or not.

All replicas watch them, and many ask: the webhook for finalizers, virtual nodes for the Target that
they stand for, pods whether the Target that they were sent to still exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import Final

from vnode.api import kinds, names, objects
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.targets import cluster_identity, model
from vnode.targets.profiles import profile_references
from vnode.targets.target_index import TargetIndex
from vnode.targets.target_quota import TargetQuota

_PROFILE_INDEX: Final = "profile"


def _profile_index(target: Object) -> Iterator[str]:
    if profile := profile_references.named_by(target):
        yield _place(objects.namespace(target), profile)


def _place(namespace: str, profile: str) -> str:
    return f"{namespace} {profile}"


class TargetLister:
    """Lists Targets of the local cluster; `namespace` is for callers that may see only one.

    Of each namespace, `limit` Targets fit (`quota`); None means all.
    """

    def __init__(
        self, local: Client, namespace: str | None = None, *, limit: int | None = None
    ) -> None:
        self.quota = TargetQuota(limit)
        self._local = local
        indexes = {_PROFILE_INDEX: _profile_index}
        self._targets = Informer(local, kinds.TARGETS, namespace=namespace, indexes=indexes)
        self._cluster_targets = Informer(local, kinds.CLUSTER_TARGETS, indexes=indexes)
        self._index = TargetIndex()
        self._changed: Listeners[TargetKey] = Listeners()
        for informer in self.informers:
            informer.subscribe(self._index.on_target)

        self._targets.subscribe(self.quota.on_target)
        self.quota.subscribe(self._changed.call)
        for informer in self.informers:  # once what they ask is up to date
            informer.subscribe(self._on_target)

    @property
    def informers(self) -> tuple[Informer, Informer]:
        """The informers of Targets and ClusterTargets."""
        return self._targets, self._cluster_targets

    @property
    def synced(self) -> bool:
        """Whether all are known; before that, an absent one means nothing."""
        return self._targets.synced.is_set() and self._cluster_targets.synced.is_set()

    def knows(self, namespace: str) -> bool:
        """Tell whether all of a namespace are known, ClusterTargets for ""."""
        return (self._targets if namespace else self._cluster_targets).knows(namespace)

    @property
    def _unknown(self) -> Iterator[str]:
        """The namespaces to which the agent is held, and of which nothing is known."""
        return (each for each in self._local.scope.names if not self._targets.knows(each))

    async def wait_synced(self) -> None:
        """Return once all are known, but for namespaces that let nobody in."""
        await self._targets.synced.wait()
        await self._cluster_targets.synced.wait()

    async def run(self) -> None:
        """Watch them until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cluster_targets.run(), name="clustertargets")
            group.create_task(self._targets.run(), name="targets")

    def get(self, key: TargetKey) -> Object | None:
        """Return the object, None if there is none."""
        informer = self._targets if key.namespace else self._cluster_targets
        return informer.store.get(str(key))

    def of_profile(self, profile: str, namespace: str) -> Object | None:
        """Return the first Target for a namespace that names a ClusterProfile (`namespace/name`).

        A ClusterTarget comes before a Target; None if there is neither.
        """
        for informer, place in ((self._cluster_targets, ""), (self._targets, namespace)):
            if found := informer.store.by_index(_PROFILE_INDEX, _place(place, profile)):
                return found[0]

        return None

    def cluster(self, key: TargetKey) -> str | None:
        """Return the UID of the cluster that a Target is; "" if unknown, None if there is no such
        Target."""
        if (obj := self.get(key)) is not None:
            return cluster_identity.recorded(obj)

        return None if self.knows(key.namespace) else ""

    def keys(self) -> Collection[TargetKey]:
        """Return the keys of all that exist."""
        return self._index.by_node.values()

    def of_namespace(self, namespace: str) -> list[Object]:
        """Return the Targets of a namespace; the ClusterTargets for ""."""
        return [found for key in self._index.of_namespace(namespace) if (found := self.get(key))]

    def exists(self, key: TargetKey) -> bool:
        """Tell whether there is a Target of that key."""
        return self.get(key) is not None

    def fits(self, key: TargetKey) -> bool:
        """Tell whether a Target is within the limit of its namespace."""
        return self.quota.fits(key)

    def has_node(self, name: str) -> bool:
        """Tell whether a Node of that name stands for a Target that exists, or may exist."""
        if not self.synced or name in self._index.by_node:
            return True

        return any(name.startswith(names.virtual_nodes_of(each)) for each in self._unknown)

    def of_node(self, name: str) -> TargetKey | None:
        """Return the key of the Target that a Node of that name stands for, if there is one."""
        return self._index.by_node.get(name)

    def cluster_names(self, namespace: str) -> frozenset[str] | None:
        """Return what a policy of that namespace, or a cluster-wide one, may call clusters.

        These are the names of Targets and of their virtual nodes; None while not all are known.
        """
        if not self.synced:
            return None

        keys = self._covering(namespace) if namespace else self.keys()
        return frozenset(name for key in keys for name in (key.name, key.node_name))

    def nodes_by_profile(self, namespace: str) -> dict[str, frozenset[str]] | None:
        """Return the virtual nodes for pods of that namespace, "" for all, by the ClusterProfiles
        that their Targets name (`namespace/name`); None while not all Targets are known."""
        if not self.synced:
            return None

        found: dict[str, set[str]] = {}
        for informer in self.informers:
            for obj in informer.store.values():
                key = model.key_of(obj)
                profile = profile_references.named_by(obj)
                if profile and (not namespace or key.namespace in ("", namespace)):
                    found.setdefault(profile, set()).add(key.node_name)

        return {profile: frozenset(nodes) for profile, nodes in found.items()}

    def profiles_of_nodes(self, namespace: str) -> dict[str, str] | None:
        """Return the ClusterProfiles (`namespace/name`) for what a policy of that namespace tells
        others, by virtual node; None while not all Targets are known.

        A cluster-wide policy, with namespace "", tells of ClusterTargets: a namespace's own Targets
        name what its administrators have written, where others are not to act. They have "".
        """
        if not self.synced:
            return None

        own = {} if namespace else {key.node_name: "" for key in self.keys() if key.namespace}
        return own | {
            key.node_name: profile
            for key in self._covering(namespace)
            if (obj := self.get(key)) and (profile := profile_references.named_by(obj))
        }

    def has_finalizer(self, name: str) -> bool:
        """Tell whether that finalizer belongs to a Target that exists, or may exist."""
        if not self.synced or name in self._index.by_finalizer:
            return True

        return any(name.startswith(names.finalizers_of(each)) for each in self._unknown)

    def usable(self, namespace: str) -> Collection[TargetKey]:
        """Return the keys of those that pods of a namespace may use: they exist, and fit."""
        return [key for key in self._covering(namespace) if self.fits(key)]

    def finalizers(self, namespace: str) -> list[str]:
        """Return the finalizers of a proxy pod of that namespace, in a stable order."""
        return [key.finalizer for key in sorted(self.usable(namespace), key=str)]

    def _covering(self, namespace: str) -> Iterator[TargetKey]:
        """Yield the keys of the ClusterTargets, and of the Targets of a namespace."""
        for each in dict.fromkeys(("", namespace)):
            yield from self._index.of_namespace(each)

    def subscribe_each(self, changed: Callable[[TargetKey], None]) -> None:
        """Call `changed` with the key of each that is created or deleted from now on, and of each
        that fits from then on, or no longer does."""
        self._changed.add(changed)

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None:
            self._changed.call(model.key_of(objects.latest(old, new)))
