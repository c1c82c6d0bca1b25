"""Watches the Secrets with kubeconfigs that Targets name, each one by itself.

One informer a Secret, not one for all: the agent need not keep, or even be allowed to read, other
Secrets.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from typing import Final

from vnode.api import kinds
from vnode.api.errors import ConfigError, Unreachable
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.links import TargetKey
from vnode.targets.model import SecretReference

_TIMEOUT: Final = 5.0  # seconds for the first list of a Secret


class Secrets:
    """Watches the Secrets in use, in `tasks`; calls `changed` for targets of a changed one."""

    def __init__(
        self, local: Client, tasks: KeyedTasks[str], changed: Callable[[TargetKey], None]
    ) -> None:
        self._local = local
        self._tasks = tasks  # by `namespace/name` of the Secret
        self._changed = changed
        self._references: dict[TargetKey, SecretReference] = {}  # those in use
        self._informers: dict[str, Informer] = {}  # by `namespace/name`: of each that is in use

    def use(self, key: TargetKey, reference: SecretReference | None) -> None:
        """Watch the Secret that a target names now, no longer the one that it named before."""
        before = self._references.pop(key, None)
        if reference is not None:
            self._references[key] = reference
            self._follow(reference)

        used = {other.object_key for other in self._references.values()}
        if before is not None and before.object_key not in used:
            del self._informers[before.object_key]
            self._tasks.stop(before.object_key)

    async def kubeconfig(self, reference: SecretReference) -> bytes:
        """Return the kubeconfig of a Secret in use.

        ConfigError says what is wrong with the Secret, Unreachable that it is not known yet.
        """
        informer = self._informers[reference.object_key]
        try:
            async with asyncio.timeout(0 if informer.failure else _TIMEOUT):
                await informer.synced.wait()
        except TimeoutError:
            why = informer.failure or f"no answer within {_TIMEOUT:.0f} s"
            raise Unreachable(
                f"Secret {reference.object_key} cannot be read: {why}; see that the agent may get, "
                "list and watch it"
            ) from None

        return kubeconfig(informer.store.get(reference.object_key), reference)

    def _follow(self, reference: SecretReference) -> None:
        if reference.object_key in self._informers:
            return

        informer = Informer.of_object(
            self._local, kinds.SECRETS, reference.name, reference.namespace
        )
        informer.subscribe(lambda _old, _new: self._on_secret(reference.object_key))
        self._informers[reference.object_key] = informer
        self._tasks.start(reference.object_key, informer.run, f"secret-{reference.object_key}")

    def _on_secret(self, object_key: str) -> None:
        for key, reference in self._references.items():
            if reference.object_key == object_key:
                self._changed(key)


def kubeconfig(secret: Object | None, reference: SecretReference) -> bytes:
    """Return the Secret's data under the key of the reference; ConfigError names the cure."""
    if secret is None:
        raise ConfigError(
            f"there is no Secret {reference.name!r} in namespace {reference.namespace!r}: create "
            "it with the target's kubeconfig (vnode connect does)"
        )

    data = secret.get("data") or {}
    if reference.key not in data:
        present = ", ".join(sorted(data)) or "nothing"
        raise ConfigError(
            f"Secret {reference.name!r} has no key {reference.key!r} but {present}: set "
            "spec.kubeconfigSecret.key, or add the key"
        )

    try:
        return base64.b64decode(data[reference.key], validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ConfigError(f"key {reference.key!r} of the Secret is not base64") from error
