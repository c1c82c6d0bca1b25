"""Creates namespaces in targets whose ClusterTarget asks for it, before the first candidate.

They are never deleted: others may use them by then. Their labels are left to the target, since
labels decide what pods may do there.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, ConfigError, Denied
from vnode.api.identity import Identity
from vnode.runtime.links import Link

_SETTLE: Final = 1.0  # seconds for Kubernetes to create the service account of a new one
_TRUSTED: Final = 60.0  # seconds for which one is taken to exist without asking again


class Namespaces:
    """Creates namespaces, with at most one request a namespace and minute."""

    def __init__(self, identity: Identity, clock: Clock) -> None:
        self._identity = identity
        self._clock = clock
        self._created: dict[tuple[str, str], float] = {}  # (node, namespace) -> when (monotonic)

    async def ensure(self, name: str, link: Link) -> None:
        """Return once the namespace is in the target; ConfigError if it may not be created."""
        key, now = (link.node_name, name), self._clock.monotonic()
        wanted = link.options.create_namespaces and not link.target.namespace and not link.is_self
        if not wanted or now - self._created.get(key, -_TRUSTED) < _TRUSTED:
            return

        labels = {keys.PARENT_CLUSTER_NAME: self._identity.name}
        annotations = {keys.PARENT_CLUSTER_UID: self._identity.uid}
        body = {"metadata": {"name": name, "labels": labels, "annotations": annotations}}
        try:
            with suppress(AlreadyExists):
                await link.client.create(kinds.NAMESPACES, body)
                await self._clock.sleep(_SETTLE)
        except Denied as error:
            raise ConfigError(
                f"may not create namespace {name!r} in target {link.target.name}: {error.message}; "
                "create it there, or bind ClusterRole vnode-source-namespaces to this source there"
            ) from error

        self._created[key] = now
