"""The agent's token, used for what the agent never does."""

from __future__ import annotations

from tests.rights import policy_refusal
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client


class AgentToken:
    """What the agent's token is used for."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def refusal(
        self,
        method: str,
        kind: Kind,
        body: Object | None = None,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> str:
        """Return why a policy refuses a request."""
        full = {"apiVersion": kind.api_version, "kind": kind.kind, **(body or {})}
        path = kind.path(namespace, name, subresource)
        return await policy_refusal(self.client, method, path, full if method == "POST" else body)
