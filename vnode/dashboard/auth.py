"""Authenticates and authorizes callers of the agent's dashboard.

Callers authenticate as for the kubelet API, by a client certificate or a bearer token; none are
anonymous. They need the permission `get` on the non-resource URL `/dashboard`, which is one for all
pages: these show pods of all namespaces and the answers of targets, read with the agent's own
permissions, so permissions for some pods are not enough.
"""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import VnodeError
from vnode.kube.client import Client
from vnode.kubelet.auth import client_ca
from vnode.kubelet.auth.authentication import Authenticator, UserInfo
from vnode.kubelet.auth.authorization import ALLOWED_FOR, DENIED_FOR, subject
from vnode.kubelet.auth.cache import ExpiringCache
from vnode.kubelet.auth.verdicts import Verdicts
from vnode.runtime.serving import Handler

PATH: Final = "/dashboard"
"""The path of the pages, and the non-resource URL of the permission."""

_LIMIT: Final = 1024  # cached answers


class AuthMiddleware:
    """Admits callers, or answers 401 or 403. `run` watches the client authorities."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._authorities = client_ca.ClientAuthorities(client, clock=clock)
        self._verdicts = Verdicts(lambda: self._authorities.certificates, clock)
        self._authenticator = Authenticator(client, clock)
        self._answers: ExpiringCache[UserInfo, bool] = ExpiringCache(_LIMIT, clock)

    async def run(self) -> None:
        """Watch the authorities of client certificates until cancelled."""
        await self._authorities.run()

    @property
    def middleware(self) -> Any:
        """The middleware of the application whose callers are checked."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            await self._check(request)
            return await handler(request)

        return check

    async def _check(self, request: web.Request) -> None:
        certificate = await self._verdicts.certificate(request)
        caller = await self._authenticator.authenticate(
            certificate, request.headers.get("Authorization")
        )
        if caller is None:
            raise web.HTTPUnauthorized(
                text="show a client certificate of this cluster, or a bearer token\n",
                headers={"WWW-Authenticate": "Bearer"},
            )

        try:
            allowed = await self._may(caller)
        except VnodeError as error:
            raise web.HTTPServiceUnavailable(text="rights cannot be asked about now\n") from error

        if not allowed:
            raise web.HTTPForbidden(
                text=f"{caller.user} may not get {PATH}: bind the ClusterRole vnode-dashboard\n"
            )

    async def _may(self, caller: UserInfo) -> bool:
        allowed = self._answers.get(caller)
        if allowed is None:
            attributes = {"path": PATH, "verb": "get"}
            review = await self._client.create(
                kinds.SUBJECT_ACCESS_REVIEWS,
                {"spec": {**subject(caller), "nonResourceAttributes": attributes}},
            )
            allowed = bool((review.get("status") or {}).get("allowed"))
            self._answers.put(caller, allowed, ALLOWED_FOR if allowed else DENIED_FOR)

        return allowed
