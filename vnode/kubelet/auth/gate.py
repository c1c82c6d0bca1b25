"""Authenticates and authorizes every request before its route.

Order as in a kubelet: 401 before 403 before anything that depends on the path, so that an
unauthenticated caller learns nothing from the difference between answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aiohttp import web
from cryptography import x509

from vnode.api.clock import Clock
from vnode.kubelet.auth.authentication import Authenticator, UserInfo
from vnode.kubelet.auth.authorization import Authorizer
from vnode.kubelet.auth.verdicts import Verdicts
from vnode.kubelet.refusal import Refused


class Gate:
    """Lets a request to a virtual node pass, or refuses it."""

    def __init__(
        self,
        authorities: Callable[[], Sequence[x509.Certificate]],
        authenticator: Authenticator,
        authorizer: Authorizer,
        clock: Clock,
    ) -> None:
        self._verdicts = Verdicts(authorities, clock)
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def check(self, node_name: str, request: web.Request) -> UserInfo:
        """Return who calls; Refused (401) if that is unknown, Refused (403) if they may not."""
        certificate = await self._verdicts.certificate(request)
        caller = await self._authenticator.authenticate(
            certificate, request.headers.get("Authorization"), node_name
        )
        if caller is None:
            raise Refused(401, "Unauthorized")

        await self._authorizer.authorize(caller, node_name, request.method, request.path)
        return caller
