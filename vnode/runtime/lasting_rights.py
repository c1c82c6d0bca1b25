"""Keeps the agent's rights in a namespace until it is done there, where it is held to some.

Pods that the agent elected have finalizers that only the agent takes off, once their containers
have ended in a target. But a namespace that is deleted takes its Roles and RoleBindings with it, at
once: the agent would lose the right to end the pods, and the namespace would wait for them for
ever. So while the agent has anything to do in a namespace, the two objects that give it its rights
there have a finalizer as well. An object that is being deleted counts as long as it is there.

In a namespace that is named no more the finalizer is taken off in any case: whoever took its name
off wants the rights gone.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import Invalid, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.controller import Controller
from vnode.telemetry import audit

NAME: Final = "vnode"
"""Of the Role and the RoleBinding."""
_UNKNOWN: Final = 60.0  # seconds until a namespace is looked at again in which nothing may be read

log = logging.getLogger(__name__)


class LastingRights:
    """Runs in the leader. `informers` have the objects that the agent has to end."""

    def __init__(self, client: Client, namespaces: Informer, informers: Iterable[Informer]) -> None:
        self._client = client
        self._namespaces = namespaces
        self._informers = tuple(informers)
        self._left: Counter[str] = Counter()  # objects, by namespace
        self._kept: dict[str, bool] = {}  # whether the rights of a namespace are kept, if known
        self._controller: Controller[str] = Controller(
            "lasting-rights", self._reconcile, subject=audit.agent, workers=2
        )

    async def run(self) -> None:
        """Work until cancelled."""
        for informer in self._informers:
            await informer.synced.wait()
            informer.subscribe(self._on_object)

        self._namespaces.subscribe(self._on_namespace)
        await self._controller.run()

    def _on_namespace(self, old: Object | None, new: Object | None) -> None:
        """Look at a namespace when it is first seen: another leader may have kept rights in it."""
        if old is None and new is not None:
            name = objects.name(new)
            self._kept.pop(name, None)
            self._controller.add(name)

    def _on_object(self, old: Object | None, new: Object | None) -> None:
        change = (new is not None) - (old is not None)
        if change:
            namespace = objects.namespace(objects.latest(old, new))
            self._left[namespace] += change
            self._controller.add(namespace)

    async def _reconcile(self, namespace: str) -> float | None:
        is_named = self._client.scope.covers(namespace)
        if is_named and not all(informer.knows(namespace) for informer in self._informers):
            return _UNKNOWN

        wanted = is_named and self._left[namespace] > 0
        if self._kept.get(namespace) != wanted:
            for kind in (kinds.ROLES, kinds.ROLE_BINDINGS):
                await self._keep(kind, namespace, wanted=wanted)

            self._kept[namespace] = wanted

        return None

    async def _keep(self, kind: Kind, namespace: str, *, wanted: bool) -> None:
        """Have the object last, or no longer."""
        try:
            found = await self._client.get(kind, NAME, namespace)
            present = objects.finalizers(found)
            if (keys.WORK_LEFT in present) == wanted or (wanted and objects.is_terminating(found)):
                return

            others = objects.finalizers_without(found, keys.WORK_LEFT)
            finalizers = [*others, keys.WORK_LEFT] if wanted else others
            body = objects.finalizers_patch(found, finalizers)
            await self._client.patch(kind, NAME, body, namespace)
        except NotFound:
            log.debug("there is no %s %s/%s", kind.kind, namespace, NAME)
        except Invalid as error:  # deleted in between
            log.info("%s %s/%s cannot be kept: %s", kind.kind, namespace, NAME, error)
