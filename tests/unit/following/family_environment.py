"""A family of what follows, in a source without a server, and the pods that it hears of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.following.family import FamilyContext
from vnode.following.reference_index import Key
from vnode.kube.client import Client

US: Final = Identity("c1", "uid-1")
NODE: Final = "admiralty-gpu"


def pod(name: str = "web", namespace: str = "team-a", **spec: Any) -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}
    return {
        "metadata": {**metadata, "labels": {"app": "web"}},
        "spec": {"nodeName": NODE, **spec},
        "status": {},
    }


class FamilySource:
    """What families are given, of a cluster without a server."""

    def __init__(self, clock: Clock, client: Client | None = None) -> None:
        self.woken: dict[Key, None] = {}
        self.context = FamilyContext(
            local=client or self,  # type: ignore[arg-type]
            links=[],  # type: ignore[arg-type]
            identity=US,
            wake=lambda key: self.woken.update({key: None}),
            wake_kind=lambda _kind: None,
            copies_of=lambda _ref: {},
            clock=clock,
            delegates=SimpleNamespace(labels=lambda *_of: US.labels),  # type: ignore[arg-type]
        )

    async def get(self, _kind: Any, name: str, namespace: str) -> Object:
        """Return any ConfigMap that is asked for."""
        metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"}
        return {"metadata": metadata, "data": {}}
