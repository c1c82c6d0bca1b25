"""The gate before every route: who calls, and whether they may.

Order as in a kubelet: 401 before 403 before anything that depends on the path, so that a stranger
learns nothing from the difference between answers.
"""

from __future__ import annotations

from aiohttp import web

from vnode.kubelet.authentication import Authenticator
from vnode.kubelet.authorization import Authorizer
from vnode.kubelet.refusal import Refused


class Gate:
    """Lets a request to a virtual node pass, or refuses it."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def check(self, node_name: str, request: web.Request) -> None:
        """Raises Refused: 401 for nobody we know, 403 for somebody who may not."""
        certificate = request.get_extra_info("peercert")
        caller = await self._authenticator.authenticate(
            certificate, request.headers.get("Authorization")
        )
        if caller is None:
            raise Refused(401, "Unauthorized")

        await self._authorizer.authorize(caller, node_name, request.method, request.path)
