"""Watches PodGroups of the APIs that pods name, and says how many pods of a group start together.

Nothing is watched before a pod names a group of that API. The kinds of coscheduling and of Volcano
come with CRDs, which may come later than the pods (`ServedInformer`). Kubernetes' own is built in,
in a version that depends on its release, and behind a feature gate: so it is looked for, again and
again while it is not there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import NotFound, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.gangs import group_status, pod_groups
from vnode.gangs.membership import GangKey, GroupApi
from vnode.gangs.pod_groups import GroupStanding
from vnode.kube import answer_limits
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_informer import ServedInformer
from vnode.runtime.sliced_work import SlicedWork

_LOOK_AGAIN: Final = 30.0
"""Seconds after which Kubernetes' own groups are looked for again."""

Changed = Callable[[GangKey], None]

log = logging.getLogger(__name__)


class PodGroups:
    """The groups of a cluster; `changed` is called with each key whose group may be another.

    No names are kept here: users choose them, and they come and go with their pods.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._changed: Changed = lambda _key: None
        self._tasks: KeyedTasks[str] | None = None
        self._named: Callable[[GroupApi], Iterable[GangKey]] = lambda _api: ()
        self._telling = SlicedWork(self._tell_all, clock)
        self._apis: set[GroupApi] = set()  # of which any group was asked for
        self._served = {
            GroupApi.COSCHEDULING: self._informer(kinds.COSCHEDULING_GROUPS, GroupApi.COSCHEDULING),
            GroupApi.VOLCANO: self._informer(kinds.VOLCANO_GROUPS, GroupApi.VOLCANO),
        }
        self._native: Informer | None = None
        self._is_looked_for = False  # whether the API server has said what it serves

    def watch(
        self,
        tasks: KeyedTasks[str],
        changed: Changed,
        named: Callable[[GroupApi], Iterable[GangKey]],
    ) -> None:
        """Watch in these tasks from now on, once a group is asked for.

        `named` returns the groups of an API that pods name now.
        """
        self._tasks, self._changed, self._named = tasks, changed, named
        tasks.start("all-groups", self._telling.run, "tell-of-all-pod-groups")
        for api in self._apis:
            self._begin(api)

    def find(self, key: GangKey) -> GroupStanding:
        """Return what is known of a group."""
        if key.api not in self._apis:
            self._apis.add(key.api)
            self._begin(key.api)

        name = objects.join_key(key.namespace, key.name)
        if key.api is GroupApi.NATIVE:
            return self._find_native(key, name)

        informer = self._served[key.api]
        if (failure := informer.failure) is not None:
            return GroupStanding(problem=f"PodGroups of {key.api.value} cannot be read: {failure}")

        if not informer.is_known:
            return GroupStanding()

        group = informer.get(name)
        if group is None:
            return pod_groups.missing(key, is_served=informer.is_served)

        return pod_groups.standing(key, group)

    def get(self, key: GangKey) -> tuple[Kind, Object] | None:
        """Return the PodGroup of a gang, as far as it is known, with its kind."""
        name = objects.join_key(key.namespace, key.name)
        if (served := self._served.get(key.api)) is not None:
            group = served.get(name)
            return (served.kind, group) if group is not None else None

        native = self._native if key.api is GroupApi.NATIVE else None
        group = native.store.get(name) if native is not None else None
        return (native.kind, group) if native is not None and group is not None else None

    def _find_native(self, key: GangKey, name: str) -> GroupStanding:
        informer = self._native
        if informer is None:
            return (
                pod_groups.missing(key, is_served=False) if self._is_looked_for else GroupStanding()
            )

        if informer.failure is not None and not informer.synced.is_set():
            why = f"PodGroups of {key.api.value} cannot be read: {informer.failure}"
            return GroupStanding(problem=why)

        if not informer.synced.is_set():
            return GroupStanding()

        group = informer.store.get(name)
        return (
            pod_groups.missing(key, is_served=True)
            if group is None
            else pod_groups.standing(key, group)
        )

    def _informer(self, kind: Kind, api: GroupApi) -> ServedInformer:
        def changed(old: Object | None, new: Object | None) -> None:
            self._on_group(api, old, new)

        return ServedInformer(self._client, kind, changed, trim=_trim)

    def _begin(self, api: GroupApi) -> None:
        if self._tasks is None:
            return

        if api is GroupApi.NATIVE:
            self._tasks.start("native-groups", self._look, "native-pod-groups")
        else:
            self._served[api].watch(self._tasks)

    async def _look(self) -> None:
        """Look for the version that is served, and watch that one."""
        was_told = False
        while (kind := await self._native_kind()) is None:
            if self._is_looked_for and not was_told:
                was_told = True
                self._telling.add(GroupApi.NATIVE)

            await self._clock.sleep(_LOOK_AGAIN)

        informer = self._native = Informer(self._client, kind, trim=_trim)
        informer.subscribe(lambda old, new: self._on_group(GroupApi.NATIVE, old, new))
        assert self._tasks is not None
        self._tasks.start("native-groups", informer.run, f"native-{kind.version}-pod-groups")
        await informer.synced.wait()
        self._telling.add(GroupApi.NATIVE)

    def _tell_all(self, api: GroupApi) -> Iterator[None]:
        """Tell of all groups of an API that pods name; these may be thousands."""
        for key in list(self._named(api)):
            self._changed(key)
            yield

    async def _native_kind(self) -> Kind | None:
        for kind in kinds.NATIVE_GROUPS:
            try:
                listed = await self._client.request(
                    "GET", f"/apis/{kind.api_version}", bound=answer_limits.SMALL
                )
            except NotFound:
                continue
            except VnodeError as error:
                log.warning("cannot tell whether PodGroups are served: %s", error)
                return None

            if any(entry.get("name") == kind.plural for entry in listed.get("resources") or ()):
                return kind

        self._is_looked_for = True
        return None

    def _on_group(self, api: GroupApi, old: Object | None, new: Object | None) -> None:
        if old is None and new is None:
            self._telling.add(api)
            return

        group = objects.latest(old, new)
        self._changed(GangKey(api, objects.namespace(group), objects.name(group)))


def _trim(group: Object) -> Object:
    """Return what is read of a group: users write the rest, at any length."""
    spec = {k: v for k, v in objects.spec(group).items() if k in pod_groups.FIELDS}
    listed = objects.status(group).get("conditions") or ()
    conditions = [each for each in listed if each.get("type") in group_status.CONDITIONS]
    return {"metadata": _metadata(group), "spec": spec, "status": {"conditions": conditions}}


def _metadata(group: Object) -> Object:
    kept = ("name", "namespace", "uid", "resourceVersion", "generation")
    return {k: v for k, v in objects.metadata(group).items() if k in kept}
