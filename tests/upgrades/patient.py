"""Asks again where a busy API server has not answered: a walk of half an hour meets such moments.

Nothing of these tests takes an API server away. Agents, as always, see to themselves.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from tests import kit
from vnode.api import objects
from vnode.api.errors import AlreadyExists, NotFound, Unreachable
from vnode.kube.client import Client


class PatientClient(Client):
    """Sends a request until it is answered, and sees what came of those that were not."""

    async def request(self, method: str, path: str, **options: Any) -> Any:
        """Send a request as `Client` does, for as long as tests wait."""
        async with asyncio.timeout(kit.PATIENCE):
            with suppress(Unreachable):
                return await super().request(method, path, **options)

            while True:
                try:
                    return await super().request(method, path, **options)
                except Unreachable:
                    continue
                except NotFound:
                    if method != "DELETE":
                        raise

                    return None
                except AlreadyExists:
                    return await self.request("GET", f"{path}/{objects.name(options['body'])}")
