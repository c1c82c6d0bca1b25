"""Who may see the dashboard of an agent: the kubelet API's way of knowing callers, and one right.

Callers prove who they are as they do to the kubelet API, by a client certificate or a bearer token;
there are no anonymous ones. The right is `get` on the non-resource URL `/dashboard`, for all of its
pages: they show pods of all namespaces and what targets say about them, with the agent's own
rights, so it is not for whoever may see some pods.
"""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import VnodeError
from vnode.kube.client import Client
from vnode.kubelet.auth import client_ca, client_certificates
from vnode.kubelet.auth.authentication import Authenticator, UserInfo
from vnode.kubelet.auth.authorization import ALLOWED_FOR, DENIED_FOR, subject
from vnode.kubelet.auth.cache import ExpiringCache
from vnode.kubelet.auth.tls import peer_certificates
from vnode.runtime.serving import Handler

PATH: Final = "/dashboard"
"""Where the pages are, and what the right is about."""

_LIMIT: Final = 1024  # answers that are kept


class AuthMiddleware:
    """Lets callers in, or answers 401 or 403. `run` follows the client authorities."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._authorities = client_ca.ClientAuthorities(client, clock=clock)
        self._authenticator = Authenticator(client, clock)
        self._answers: ExpiringCache[UserInfo, bool] = ExpiringCache(_LIMIT, clock)

    async def run(self) -> None:
        """Follow the authorities of client certificates until cancelled."""
        await self._authorities.run()

    @property
    def middleware(self) -> Any:
        """For the application behind the door."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            await self._check(request)
            return await handler(request)

        return check

    async def _check(self, request: web.Request) -> None:
        certificate = client_certificates.verify(
            peer_certificates(request), self._authorities.certificates, self._clock.now()
        )
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
        known = self._answers.get(caller)
        if known is None:
            wanted = {"path": PATH, "verb": "get"}
            answer = await self._client.create(
                kinds.SUBJECT_ACCESS_REVIEWS,
                {"spec": {**subject(caller), "nonResourceAttributes": wanted}},
            )
            known = bool((answer.get("status") or {}).get("allowed"))
            self._answers.put(caller, known, ALLOWED_FOR if known else DENIED_FOR)

        return known
