"""Asks whether the agent may do in its own cluster what a Target with `self: true` takes.

In another cluster a Source gives these rights. Here they are those to read logs and to open streams
of all pods, so an administrator has to ask for them. Pods run without them: such a Target stays
Ready, and a condition of its own says what is missing.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import VnodeError
from vnode.api.kinds import Kind
from vnode.kube import access_review
from vnode.kube.client import Client
from vnode.runtime.link import Link

PERIOD: Final = 60.0
"""Seconds between two questions: nothing tells that rights were given or taken away."""

_RIGHTS: Final[tuple[tuple[str, Kind, str], ...]] = (
    ("list", kinds.RESOURCE_QUOTAS, ""),
    ("get", kinds.PODS, "log"),
    ("create", kinds.PODS, "exec"),
)
"""Some of each kind, of the role vnode-self-target."""

log = logging.getLogger(__name__)


async def lacking(client: Client, namespace: str) -> tuple[str, ...]:
    """Return which rights the agent lacks in a namespace, "" for all; none if it has all."""
    found = []
    for verb, kind, subresource in _RIGHTS:
        attributes = {"verb": verb, "resource": kind.plural, "namespace": namespace}
        if subresource:
            attributes["subresource"] = subresource

        if not await access_review.may(client, attributes):
            found.append(f"{verb} {kind.plural}" + (f"/{subresource}" if subresource else ""))

    return tuple(found)


class OwnRights:
    """Keeps `lacking_rights` of the link to the agent's own cluster true."""

    def __init__(self, link: Link, clock: Clock) -> None:
        self._link = link
        self._clock = clock
        self.known = asyncio.Event()  # set once it was asked
        self.held = asyncio.Event()  # set once the agent has had all of them

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            try:
                found = await lacking(self._link.client, self._link.target.namespace)
            except VnodeError as error:
                log.debug("the agent's rights are not known: %s", error)
            else:
                self._link.set_lacking_rights(found)
                self.known.set()
                if not found:
                    self.held.set()

            await self._clock.sleep(PERIOD)
