"""Creates namespaces in targets whose ClusterTarget asks for it, before the first candidate.

They are never deleted: others may use them by then. Their labels are left to the target, since
labels decide what pods may do there, but for the one by which ClusterSources hold there, and those
of Pod Security that restrict pods: what the source's admission refuses in a namespace is not to run
in that of a target.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from weakref import WeakKeyDictionary

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, ConfigError, Denied
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.runtime.link import Link

_SETTLE: Final = 1.0  # seconds for Kubernetes to create the service account of a new one
_POD_SECURITY: Final = "pod-security.kubernetes.io/"
_MODES: Final = ("enforce", "audit", "warn")
_RESTRICTING: Final = ("baseline", "restricted")  # "privileged" could lift a target's own default
_TRUSTED: Final = 60.0  # seconds for which one is taken to exist without asking again


class Namespaces:
    """Creates namespaces, with at most one request a namespace and minute."""

    def __init__(self, local: Client, identity: Identity, clock: Clock) -> None:
        self._local = local
        self._identity = identity
        self._clock = clock
        # When (monotonic) they were created, by name. A later link may be to another cluster.
        self._created: WeakKeyDictionary[Link, dict[str, float]] = WeakKeyDictionary()

    async def ensure(self, name: str, link: Link) -> None:
        """Return once the namespace is in the target; ConfigError if it may not be created."""
        created, now = self._created.setdefault(link, {}), self._clock.monotonic()
        wanted = link.options.create_namespaces and not link.target.namespace and not link.is_self
        if not wanted or now - created.get(name, -_TRUSTED) < _TRUSTED:
            return

        source = await self._local.get(kinds.NAMESPACES, name)
        accepting = dict([keys.CLUSTER_SOURCES])  # else it might not be for this source
        labels = {
            keys.PARENT_CLUSTER_NAME: self._identity.name,
            **accepting,
            **pod_security(source),
        }
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

        created[name] = now


def pod_security(namespace: Object) -> dict[str, str]:
    """Return the labels of a namespace by which Pod Security restricts pods, and their versions."""
    own = objects.labels(namespace)
    found: dict[str, str] = {}
    for mode in _MODES:
        label, version = f"{_POD_SECURITY}{mode}", f"{_POD_SECURITY}{mode}-version"
        if own.get(label) in _RESTRICTING:
            found |= {key: own[key] for key in (label, version) if key in own}

    return found
