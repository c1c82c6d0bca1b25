"""Keeps the links of Targets that are deleted, for what was issued by them to be revoked.

A namespace's controller deletes Targets and requests in any order, and so does `kubectl delete -f`.
Whatever goes first, the rights that were given in the target must go with it, and the link is the
only way there. So it is held for some seconds beyond the end of the Target.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Final

from vnode.runtime.link import Link

LIFE: Final = 10.0
"""Seconds that a request may be deleted after its Target."""


class LeavingLinks:
    """Holds links that leave, by virtual node."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Link, ExitStack]] = {}

    def hold(self, link: Link) -> None:
        """Hold a link that begins to leave."""
        if link.node_name in self._held and self._held[link.node_name][0] is link:
            return

        self._release(link.node_name)
        stack = ExitStack()
        stack.enter_context(link.held())
        self._held[link.node_name] = link, stack
        asyncio.get_running_loop().call_later(LIFE, self._end, link)

    def get(self, node: str) -> Link | None:
        """Return the link of a virtual node that leaves; None if there is none, or none any
        more."""
        held = self._held.get(node)
        return held[0] if held else None

    def close(self) -> None:
        """Release all of them."""
        for node in list(self._held):
            self._release(node)

    def _end(self, link: Link) -> None:
        if self.get(link.node_name) is link:
            self._release(link.node_name)

    def _release(self, node: str) -> None:
        if held := self._held.pop(node, None):
            held[1].close()
