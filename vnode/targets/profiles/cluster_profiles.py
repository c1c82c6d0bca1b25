"""Watches the ClusterProfiles that Targets name, while this cluster serves them.

vnode never installs the CRD, which belongs to an inventory and may come and go. While no Target
names a profile nothing is watched; from then on the CRD, by its name alone; and the profiles while
the CRD is established. So a CRD that comes later is noticed at once, and one that is missing costs
no requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import kinds
from vnode.api.errors import Unreachable
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_kinds import ServedKind, is_served_now
from vnode.targets import named_objects
from vnode.targets.named_objects import NamedObjects
from vnode.targets.profiles import refusals
from vnode.targets.profiles.profile_references import ProfileReference
from vnode.targets.profiles.refusals import ProfileRefused, ProfileUnavailable

CRD: Final = kinds.CLUSTER_PROFILES.resource
_CRD_TASK: Final = "crd"  # no `namespace/name`
_NOT_SERVED: Final = (
    f"this cluster does not serve {CRD} of version {kinds.CLUSTER_PROFILES.version}: install the "
    "inventory's CRD; it is noticed at once"
)


class ClusterProfiles:
    """Watches profiles in use, in `tasks`; calls `changed` for targets of a changed one."""

    def __init__(
        self, local: Client, tasks: KeyedTasks[str], changed: Callable[[TargetKey], None]
    ) -> None:
        self._local = local
        self._tasks = tasks
        self._changed = changed
        self._profiles = NamedObjects(local, kinds.CLUSTER_PROFILES, tasks, changed)
        self._used: dict[TargetKey, ProfileReference] = {}
        self._kind: ServedKind | None = None  # since a Target first named a profile

    def use(self, key: TargetKey, reference: ProfileReference | None) -> None:
        """Watch the profile that a target names now, no longer the one that it named before."""
        self._used.pop(key, None)
        if reference is not None:
            self._used[key] = reference
            self._watch_crd()

        self._profiles.use(key, reference.object_key if reference and self._is_served else None)

    async def read(self, reference: ProfileReference) -> Object:
        """Return a profile in use.

        ProfileRefused if there is none, ProfileUnavailable if that is not known.
        """
        assert self._kind is not None, "use it first"
        if not await named_objects.is_known(self._kind):
            why = named_objects.why_unknown(self._kind)
            raise ProfileUnavailable(
                refusals.UNREADABLE,
                f"whether this cluster serves {CRD} is not known: {why}; see that the agent may "
                "get, list and watch that CRD",
            )

        if not self._is_served:
            raise ProfileUnavailable(refusals.NOT_SERVED, _NOT_SERVED)

        try:
            profile = await self._profiles.read(reference.object_key)
        except Unreachable as error:
            raise ProfileUnavailable(refusals.UNREADABLE, str(error)) from error

        if profile is not None:
            return profile

        await self._see_that_it_is_served()
        raise ProfileRefused(
            refusals.NOT_FOUND,
            f"there is no ClusterProfile {reference.name!r} in namespace {reference.namespace!r}: "
            "name one of kubectl get clusterprofiles -A",
        )

    async def _see_that_it_is_served(self) -> None:
        """Raise ProfileUnavailable if a profile is gone because its CRD goes: nobody removed it."""
        if not await is_served_now(self._local, kinds.CLUSTER_PROFILES):
            raise ProfileUnavailable(refusals.NOT_SERVED, _NOT_SERVED)

    @property
    def _is_served(self) -> bool:
        """Whether the cluster serves the kind; only then profiles are watched."""
        return self._kind is not None and self._kind.is_served

    def _watch_crd(self) -> None:
        if self._kind is None:
            self._kind = ServedKind(self._local, kinds.CLUSTER_PROFILES, self._on_kind)
            self._tasks.start(_CRD_TASK, self._kind.run, f"crd-{CRD}")

    def _on_kind(self) -> None:
        for key, reference in self._used.items():
            self._profiles.use(key, reference.object_key if self._is_served else None)
            self._changed(key)
