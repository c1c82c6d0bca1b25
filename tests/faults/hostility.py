"""A hostile tenant of the source, and a hostile source of both targets, beside a step's faults.

Each has a namespace of its own. The tenant makes Targets whose kubeconfigs are nonsense, and pods
and Services with forged annotations. The other source plants chaperons: garbage, and such as name
pods that are there. Before things have to settle, all of it is removed: pods of others must not
have noticed, and what stood by, in a namespace that nobody gave to vnode, must be as it was.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from tests import kit
from tests.faults.harness import Harness
from tests.faults.plan import SOURCE, TARGETS
from tests.faults.snapshot import Violation
from tests.fuzz import chaperons, kubeconfigs, services
from vnode.api import keys, kinds, names, objects
from vnode.api.errors import NotFound, VnodeError
from vnode.api.objects import Object

TENANT: Final = "hostile-tenant"
PLANTS: Final = "hostile-source"
BYSTANDER: Final = "bystander"
_LABEL: Final = {"example.com/hostile": "true"}
_SELECTOR: Final = "example.com/hostile=true"
_PAUSE: Final = 1.0  # seconds between two acts, on average
_RULE: Final = "what nobody gave to vnode is not touched"


class Hostility:
    """Acts by dice of its own, so that the steps of a seed stay the same.

    `proxies` gives the pods whose chaperons it forges.
    """

    def __init__(
        self, harness: Harness, dice: random.Random, proxies: Callable[[], Sequence[Object]]
    ) -> None:
        self.done: Counter[str] = Counter()
        self._harness = harness
        self._dice = dice
        self._proxies = proxies
        self._known: dict[str, str] = {}  # cluster -> version of what stands by
        self._number = 0

    async def begin(self) -> None:
        """Make the namespaces, and something that stands by."""
        enabled = dict([keys.WEBHOOK_NAMESPACE_LABEL])
        for cluster, client in self._harness.clients.items():
            for name in (TENANT if cluster == SOURCE else PLANTS, BYSTANDER):
                metadata: Object = {"name": name, "labels": enabled if name == TENANT else {}}
                await client.apply(kinds.NAMESPACES, {"metadata": metadata}, manager="faults")

            place = {"name": "bystander", "namespace": BYSTANDER}
            stored = await client.apply(
                kinds.CONFIG_MAPS, {"metadata": place, "data": {"a": "b"}}, manager="faults"
            )
            self._known[cluster] = objects.resource_version(stored)

    async def run(self) -> None:
        """Do hostile acts until cancelled; leave an act that fails because something is broken."""
        acts = {
            "Targets": self._make_target,
            "pods": self._make_pod,
            "Services": self._make_service,
            "garbage chaperons": self._plant_garbage,
            "planted chaperons": self._plant_forgery,
        }
        while True:
            what = self._dice.choice(list(acts))
            with suppress(VnodeError):
                await acts[what]()
                self.done[what] += 1

            await asyncio.sleep(self._dice.expovariate(1 / _PAUSE))

    async def end(self) -> list[Violation]:
        """Remove all that was made; tell what of others has changed."""
        try:
            async with asyncio.timeout(kit.PATIENCE):
                while await self._remove():  # noqa: ASYNC110 - no event tells that all is gone
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            left = await self._left()
            return [Violation("what a hostile account made can be removed", str(left)[:2000])]

        return [
            Violation(_RULE, f"ConfigMap bystander of {cluster}")
            for cluster, version in self._known.items()
            if version != await self._version(cluster)
        ]

    async def _version(self, cluster: str) -> str:
        found = await self._harness.clients[cluster].get(kinds.CONFIG_MAPS, "bystander", BYSTANDER)
        return objects.resource_version(found)

    async def _left(self) -> list[tuple[str, str, Object]]:
        """List what there is: cluster, plural of the kind, object."""
        found = []
        wanted = {SOURCE: (kinds.TARGETS, kinds.SECRETS, kinds.PODS, kinds.SERVICES)}
        for cluster, client in self._harness.clients.items():
            namespace = TENANT if cluster == SOURCE else PLANTS
            for kind in wanted.get(cluster, (kinds.POD_CHAPERONS,)):
                with suppress(NotFound):  # vnode is uninstalled there
                    listed = await client.list(kind, namespace, label_selector=_SELECTOR)
                    found += [(cluster, kind.plural, obj) for obj in listed]

        return found

    async def _remove(self) -> bool:
        """Delete what is left; tell whether there was something."""
        try:
            left = await self._left()
            for cluster, plural, obj in left:
                if not objects.is_terminating(obj):
                    kind = next(kind for kind in _KINDS if kind.plural == plural)
                    await self._harness.clients[cluster].discard(kind, obj)
        except VnodeError:  # somebody's API server is about to come back
            return True

        return bool(left)

    def _metadata(self, namespace: str, annotations: dict[str, str]) -> Object:
        self._number += 1
        return {
            "name": f"hostile-{self._number}",
            "namespace": namespace,
            "labels": dict(_LABEL),
            "annotations": annotations,
        }

    async def _make_target(self) -> None:
        source, url = self._harness.source, self._harness.urls[f"{SOURCE}>{TARGETS[0]}"]
        metadata = self._metadata(TENANT, {})
        config = kubeconfigs.mutated(self._dice, url, "token")
        data = {"config": base64.b64encode(config).decode()}
        await source.create(kinds.SECRETS, {"metadata": metadata, "data": data})
        spec = {"kubeconfigSecret": {"name": metadata["name"]}}
        await source.create(kinds.TARGETS, {"metadata": metadata, "spec": spec})

    async def _make_pod(self) -> None:
        annotations = {keys.ELECT: ""} | services.forge(self._dice, services.FORGED)
        container = {"name": "main", "image": "busybox"}
        await self._harness.source.create(
            kinds.PODS,
            {"metadata": self._metadata(TENANT, annotations), "spec": {"containers": [container]}},
        )

    async def _make_service(self) -> None:
        annotations = services.forge(self._dice, services.FORGED)
        spec = {"selector": {"a": "b"}, "ports": [{"port": 80}], "type": "LoadBalancer"}
        await self._harness.source.create(
            kinds.SERVICES, {"metadata": self._metadata(TENANT, annotations), "spec": spec}
        )

    async def _plant_garbage(self) -> None:
        made = chaperons.mutated(self._dice, "hostile", PLANTS)
        made["metadata"] = self._metadata(PLANTS, made["metadata"]["annotations"])
        await self._plant(made)

    async def _plant_forgery(self) -> None:
        """Create a forged chaperon of a pod that is there; it says that the pod has a place."""
        proxies = self._proxies()
        if not proxies:
            return

        proxy = self._dice.choice(proxies)
        made = chaperons.sample("hostile", PLANTS)
        annotations = made["metadata"]["annotations"] | {
            keys.PARENT_NAMESPACE: objects.namespace(proxy),
            keys.PARENT_NAME: objects.name(proxy),
            keys.IS_RESERVED: "true",
            keys.IS_ALLOWED: "true",
        }
        made["metadata"] = self._metadata(PLANTS, annotations)
        made["metadata"]["name"] = names.chaperon(objects.name(proxy), objects.uid(proxy))
        made["metadata"]["labels"] |= {
            keys.PARENT_UID: objects.uid(proxy),
            keys.PARENT_CLUSTER_NAME: SOURCE,
        }
        await self._plant(made)

    async def _plant(self, made: Object) -> None:
        await self._harness.clients[self._dice.choice(TARGETS)].create(kinds.POD_CHAPERONS, made)


_KINDS: Final = (kinds.TARGETS, kinds.SECRETS, kinds.PODS, kinds.SERVICES, kinds.POD_CHAPERONS)
