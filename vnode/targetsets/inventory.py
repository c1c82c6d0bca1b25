"""Watches all ClusterProfiles, from the first set on and while this cluster serves them.

As for Targets, the CRD is watched first: a kind that is removed takes its objects with it, and
nobody has removed those. What a store does not have is asked for again before anything follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from vnode.api import kinds, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_kinds import ServedKind, is_served_now

_CRD_TASK: Final = "crd"
_PROFILES_TASK: Final = "profiles"


class WatchedInventory:
    """The ClusterProfiles of this cluster; calls `changed` when one changes, or all."""

    def __init__(self, local: Client, changed: Callable[[], None]) -> None:
        self._local = local
        self._changed = changed
        self._tasks: KeyedTasks[str] | None = None  # from the first set on
        self._kind = ServedKind(local, kinds.CLUSTER_PROFILES, self._on_kind)
        self._profiles: Informer | None = None  # while the kind is served

    def watch(self, tasks: KeyedTasks[str]) -> None:
        """Watch from now on; more calls do nothing."""
        if self._tasks is None:
            self._tasks = tasks
            tasks.start(_CRD_TASK, self._watch_kind, "inventory-crd")

    @property
    def known(self) -> bool:
        """Whether it is known which profiles there are, or that the kind is not served."""
        if not self._kind.is_known:
            return False

        return self._profiles is None or self._profiles.synced.is_set()

    @property
    def served(self) -> bool:
        """Whether this cluster serves profiles."""
        return self._profiles is not None

    def profiles(self) -> Iterable[Object]:
        """Return all profiles."""
        return () if self._profiles is None else self._profiles.store.values()

    def get(self, key: str) -> Object | None:
        """Return the profile `namespace/name`, None if there is none."""
        return None if self._profiles is None else self._profiles.store.get(key)

    async def is_gone(self, key: str) -> bool:
        """Ask the API server whether a profile that the store does not have was deleted by itself,
        and not with its kind."""
        namespace, name = objects.split_key(key)
        try:
            await self._local.get(kinds.CLUSTER_PROFILES, name, namespace)
        except NotFound:
            return await is_served_now(self._local, kinds.CLUSTER_PROFILES)

        return False

    def _on_kind(self) -> None:
        served = self._kind.is_served
        if served != self.served and self._tasks is not None:
            self._follow(self._tasks, served)

        self._changed()

    def _follow(self, tasks: KeyedTasks[str], served: bool) -> None:
        if served:
            profiles = self._profiles = Informer(self._local, kinds.CLUSTER_PROFILES)
            profiles.subscribe(lambda _old, _new: self._on_profile(profiles))
            tasks.start(_PROFILES_TASK, lambda: self._run(profiles), "inventory-profiles")
        else:
            self._profiles = None
            tasks.stop(_PROFILES_TASK)

    async def _watch_kind(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._kind.run(), name="crd")
            await self._kind.announce()

    async def _run(self, informer: Informer) -> None:
        """Watch, and tell once all is known, also if there is nothing."""
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run(), name=informer.kind.plural)
            await informer.synced.wait()
            self._changed()

    def _on_profile(self, profiles: Informer) -> None:
        if profiles is self._profiles:
            self._changed()
