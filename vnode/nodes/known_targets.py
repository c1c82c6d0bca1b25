"""What virtual nodes need to know of Targets."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from vnode.api.target_key import TargetKey


class KnownTargets(Protocol):
    """Lists the Targets of this cluster, whether they work or not."""

    async def wait_synced(self) -> None:
        """Wait until all Targets are known: before that, a missing one means nothing."""

    def knows(self, namespace: str) -> bool:
        """Tell whether all Targets of a namespace are known, ClusterTargets for ""."""

    def keys(self) -> Collection[TargetKey]:
        """Return the Targets that exist."""

    def fits(self, key: TargetKey) -> bool:
        """Tell whether a Target is within the limit of its namespace, so that it is connected."""

    def exists(self, key: TargetKey) -> bool:
        """Tell whether there is a Target of that key."""

    def subscribe_each(self, changed: Callable[[TargetKey], None]) -> None:
        """Call `changed` with the key of each Target that is created or deleted, or fits from now
        on, or no longer does."""
