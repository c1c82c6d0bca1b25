"""Asks an API server for a token of a service account (TokenRequest).

The answer is never logged.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from vnode.api import kinds, objects
from vnode.api.errors import Unreachable
from vnode.api.objects import Object
from vnode.kube.client import Client


class GrantedToken(NamedTuple):
    """A token, and when the API server says that it ends: it may give less than was asked for."""

    text: str
    ends: datetime | None


async def request(client: Client, namespace: str, account: str, spec: Object) -> GrantedToken:
    """Ask for a token by the spec of a TokenRequest; an ApiError says why there is none."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    answer = await client.create(
        kinds.SERVICE_ACCOUNTS, body, namespace, name=account, subresource="token"
    )
    status = objects.status(answer)
    text = status.get("token")
    if not isinstance(text, str) or not text:
        raise Unreachable(f"{client.name}: the answer to a TokenRequest has no token")

    return GrantedToken(text, objects.parse_timestamp(str(status.get("expirationTimestamp"))))
