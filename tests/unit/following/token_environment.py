"""A source and a target whose pods get tokens."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, names, objects
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.following import token_requests
from vnode.following.tokens import Tokens
from vnode.runtime.links import Links
from vnode.runtime.target_options import TargetOptions

US = Identity("c1", "uid-1")


SECRET = names.token_secret("p", "u")


USUAL_PLACE = keys.SERVICE_ACCOUNT_MOUNT


def pod(node="", uid="u", phase="Running", path=USUAL_PLACE):
    container = {"name": "c", "volumeMounts": [{"name": "v", "mountPath": path}]}
    authority = {"configMap": {"name": "kube-root-ca.crt"}}
    usual = [{"serviceAccountToken": {"path": "token"}}, authority]
    mine = usual if path == USUAL_PLACE else []
    volumes = [{"name": "v", "projected": {"sources": mine}}]
    spec = {"containers": [container], "serviceAccountName": "robot", "volumes": volumes}
    metadata = {"name": "p", "namespace": "ns", "uid": uid}
    if node:
        spec["nodeName"] = node

    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


TARGET = TargetKey("", "t")


NODE = TARGET.node_name


class TokensEnvironment:
    """A source and its target; the agent's tokens, and the Events that it records."""

    def __init__(self, clock):
        self.clock, self.recorded = clock, []
        self.source, self.target = APIServer("c1", clock), APIServer("c2", clock)
        account = {"name": "robot", "namespace": "ns"}
        self.source.add(kinds.SERVICE_ACCOUNTS, {"metadata": account})
        authority = {"name": "kube-root-ca.crt", "namespace": "ns"}
        self.source.add(kinds.CONFIG_MAPS, {"metadata": authority, "data": {"ca.crt": "authority"}})
        self.target.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
        self.put(pod(NODE))
        self.links = Links()
        options = TargetOptions(source_api=("api", "6443"))
        self.link = links.link_to(self.target, TARGET, US, clock, options=options)
        self.links.add(self.link)
        self.tokens = Tokens(
            *(self.source.client(), self.links, US),
            holders=self._holders,
            complete=lambda _node, _namespace: True,
            events=SimpleNamespace(event=lambda *event: self.recorded.append(event)),
            clock=clock,
            chance=lambda: 0.0,
        )

    async def _holders(self, _pod):
        """Answer that no Secret here is the token of an account."""
        return {}, ""

    async def ensure(self, obj):
        await self.tokens.ensure(obj, self.link, {})

    def put(self, obj):
        """Store the pod in the source's API server."""
        self.source.add(kinds.PODS, obj)

    def add_candidate(self, **annotations):
        """Create the chaperon of the pod, with annotations of its creator."""
        labels = {keys.PARENT_CLUSTER_NAME: US.name, keys.PARENT_UID: "u"}
        metadata = {
            "name": "p-abcde",
            "namespace": "ns",
            "labels": labels,
            "annotations": annotations,
        }
        self.target.add(kinds.POD_CHAPERONS, {"metadata": metadata})

    def remove_candidate(self):
        self.target.remove(kinds.POD_CHAPERONS, "p-abcde", "ns")

    def show(self, secret):
        """Put a Secret into the target."""
        self.target.add(kinds.SECRETS, secret)

    def forged(self, obj):
        return token_requests.secret(obj, US, str(TARGET), {}, self.clock.now())

    def refuse(self, error):
        """Have no token made."""
        return self.source.fail(error, subresource="token", times=None)

    @property
    def held(self):
        return self.target.all(kinds.SECRETS)

    @property
    def asked(self):
        return self.source.received("create", kinds.SERVICE_ACCOUNTS, "token")

    @property
    def specs(self):
        return [request.body["spec"] for request in self.asked]


@asynccontextmanager
async def running(env):
    task = asyncio.create_task(env.tokens.run())
    await asyncio.sleep(0.1)
    yield task
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def names_node(env):
    (secret,) = env.held
    return objects.annotations(secret).get(keys.TOKEN_NODE) == NODE
