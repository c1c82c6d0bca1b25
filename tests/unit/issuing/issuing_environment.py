"""A cluster with AuthTokenRequests, and a target in which they are carried out."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests import background
from tests.apiserver import links as test_links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.authors import Author, RecordedAuthors
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.issuing.controller import TokenIssuing
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.runtime.links import Links
from vnode.targets import expiry
from vnode.targets.target_lister import TargetLister

ALICE = Author("alice", groups=("team", "system:authenticated"))
EAST = TargetKey("", "east")
RULES = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "create"]}]
SPEC: Object = {
    "targetRef": {"kind": "ClusterTarget", "name": "east"},
    "serviceAccountName": "queue",
    "serviceAccountNamespace": "queues",
    "roles": [{"namespace": "work", "name": "jobs", "rules": RULES}],
    "clusterRoles": [{"name": "all-jobs", "rules": RULES}],
    "expirationSeconds": 600,
}


class IssuingEnvironment:
    """The source, the target `east`, and what issues tokens."""

    def __init__(self, clock: Clock, *, chance: float = 0.5, connected: bool = True) -> None:
        self.clock = clock
        self.authors = RecordedAuthors(lambda: bytes(32), clock.now)
        self.source, self.target = APIServer("c1", clock), APIServer("c2", clock)
        self.source.add(kinds.CLUSTER_TARGETS, {"metadata": {"name": "east"}})
        self.links = Links()
        self.link = self.make_link("cluster-2")
        if connected:
            self.links.add(self.link)

        self._chance = chance
        self.begin_term()

    def begin_term(self) -> None:
        """Have a leader work in the next block that knows nothing of an earlier one."""
        self.lister = TargetLister(self.source.client("agent"))
        self._namespaces = Informer(self.source.client("agent"), kinds.NAMESPACES)
        self.events = EventRecorder(self.source.client("agent"), "vnode", self.clock)
        self.issuing = TokenIssuing(
            self.source.client("agent"),
            self.links,
            self.lister,
            self.authors,
            self._namespaces,
            self.events,
            longest=86400,
            clock=self.clock,
            chance=lambda _token: self._chance,
        )

    def make_link(self, uid: str, server: APIServer | None = None) -> Any:
        identity = Identity("c1", "cluster-1")
        return test_links.link_to(
            server or self.target, EAST, identity, self.clock, cluster_uid=uid
        )

    def request(
        self, name: str = "queue", author: Author | None = ALICE, **changes: object
    ) -> Object:
        """Make a request, as the webhook would have let it pass."""
        metadata: Object = {"namespace": "team", "name": name}
        spec = {key: value for key, value in {**SPEC, **changes}.items() if value is not None}
        obj = {"kind": "AuthTokenRequest", "metadata": metadata, "spec": spec}
        if author is not None:
            metadata["annotations"] = self.authors.annotations(obj, "team", author)

        return self.source.add(kinds.AUTH_TOKEN_REQUESTS, obj)

    def find(self, name: str = "queue") -> Object:
        return self.source.find(kinds.AUTH_TOKEN_REQUESTS, name, "team") or {}

    def conditions(self, name: str = "queue") -> dict[str, tuple[str, str]]:
        found = objects.status(self.find(name)).get("conditions") or ()
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    def message(self, type_: str, name: str = "queue") -> str:
        return str((objects.condition(self.find(name), type_) or {}).get("message"))

    def secret(self, name: str = "queue") -> Object | None:
        return self.source.find(kinds.SECRETS, name, "team")

    def token(self, name: str = "queue") -> str:
        data = (self.secret(name) or {})["data"]
        return base64.b64decode(data["token"]).decode()

    def issued_at(self, name: str = "queue") -> float:
        return float(expiry.claims(self.token(name))["iat"])

    def asked(self) -> int:
        """Count the tokens that the target was asked for."""
        return self.target.count("create", kinds.SERVICE_ACCOUNTS, "token")

    def made(self) -> set[str]:
        """Name what is labelled as ours in the target, but namespaces."""
        kinds_made = (
            kinds.SERVICE_ACCOUNTS,
            kinds.ROLES,
            kinds.ROLE_BINDINGS,
            kinds.CLUSTER_ROLES,
            kinds.CLUSTER_ROLE_BINDINGS,
        )
        return {
            f"{kind.kind} {objects.key(obj)}"
            for kind in kinds_made
            for obj in self.target.all(kind)
            if keys.ISSUED in objects.labels(obj)
        }

    async def delete(self, name: str = "queue") -> None:
        """Delete a request, as its user does."""
        await self.source.client("alice").delete(kinds.AUTH_TOKEN_REQUESTS, name, "team")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with background.running(self.lister.run(), self._namespaces.run(), self.events.run()):
            await self.lister.wait_synced()
            await self._namespaces.synced.wait()
            async with background.running(self.issuing.run()):
                await asyncio.sleep(2)
                yield
