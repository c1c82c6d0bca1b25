"""Changes Targets and what they are reached by, as administrators do, by design or by a slip."""

from __future__ import annotations

import base64

from tests.faults.harness import Harness
from tests.faults.plan import SOURCE, TARGETS, Action
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.cli import kubeconfigs

NAMESPACE = "default"


class Targets:
    """Of a harness. Each method may be called again after an error."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._removed: dict[str, Object] = {}  # specs by name, to be put back
        self._own: dict[str, Object] = {}  # data of Secrets by target, while another's is there

    async def edit(self, action: Action) -> None:
        """Change its spec."""
        spec = {"excludedLabelsRegexp": f"^edited-{action.at}="}
        await self._harness.source.patch(kinds.TARGETS, action.target, {"spec": spec}, NAMESPACE)

    async def rotate_token(self, action: Action) -> None:
        """Give a Target a new token, as `vnode connect` does when the old one ends."""
        client = self._harness.clients[action.target]
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 24 * 3600},
        }
        answer = await client.create(
            kinds.SERVICE_ACCOUNTS, request, NAMESPACE, name=SOURCE, subresource="token"
        )
        reach, _name = kubeconfigs.read(self._harness.fleet.kubeconfig(action.target))
        reach = reach.at(self._harness.urls[f"{SOURCE}>{action.target}"])
        made = kubeconfigs.build(reach, str(objects.status(answer)["token"]), NAMESPACE)
        await self._write(action.target, {"config": base64.b64encode(made).decode()})

    async def remove(self, action: Action) -> None:
        """Delete the Target, until `put_back`."""
        target = await self._harness.source.get(kinds.TARGETS, action.target, NAMESPACE)
        self._removed[action.target] = objects.spec(target)
        await self._harness.source.discard(kinds.TARGETS, target)

    async def put_back(self) -> None:
        """Make removed Targets anew."""
        while self._removed:
            name, spec = next(iter(self._removed.items()))
            body = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
            await self._harness.source.apply(kinds.TARGETS, body, manager="faults")
            del self._removed[name]

    async def exchange(self, action: Action) -> None:
        """Let the Secret lead to another cluster."""
        (other,) = set(TARGETS) - {action.target}
        own, others = await self._read(action.target), await self._read(other)
        self._own.setdefault(action.target, own)
        await self._write(action.target, others)

    async def exchange_back(self, action: Action) -> None:
        """Let it lead where it led."""
        await self._write(action.target, self._own[action.target])
        del self._own[action.target]

    async def _read(self, target: str) -> Object:
        secret = await self._harness.source.get(kinds.SECRETS, f"vnode-target-{target}", NAMESPACE)
        data: Object = secret["data"]
        return data

    async def _write(self, target: str, data: Object) -> None:
        name = f"vnode-target-{target}"
        await self._harness.source.patch(kinds.SECRETS, name, {"data": data}, NAMESPACE)
