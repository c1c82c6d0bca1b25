"""Tokens of the source's service accounts: who wants one, how it is asked for, how it travels.

A token is bound to its proxy pod: the source's API server takes it no more once that pod is gone,
whatever a target keeps. It is never logged, and held no longer than it takes to write it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.following.references import ROOT_CA
from vnode.kube.client import Client
from vnode.runtime.links import Link

LIFE: Final = 3600  # seconds; what admission asks for in volumes of its own
_REFRESH: Final = 0.8  # of the life, as kubelets do
_SPREAD: Final = 0.1  # of the life: pods that came together do not refresh together
_MINTER: Final = "vnode-token-minter"


class Grant(NamedTuple):
    """A Secret for a target, and when to replace it."""

    secret: Object
    refresh: datetime


def wants(pod: Object) -> bool:
    """The pod mounts its service account's token where programs look for it."""
    return any(
        mount.get("mountPath") == keys.SERVICE_ACCOUNT_MOUNT
        for field in ("containers", "initContainers")
        for container in objects.spec(pod).get(field) or ()
        for mount in container.get("volumeMounts") or ()
    )


class Minter:
    """Asks the source's API server. `chance` (0 to 1) spreads refreshes."""

    def __init__(
        self, local: Client, identity: Identity, clock: Clock, chance: Callable[[], float]
    ) -> None:
        self._local = local
        self._identity = identity
        self._clock = clock
        self._chance = chance

    async def mint(self, pod: Object, link: Link) -> Grant:
        """A new token for a pod; ConfigError says what an administrator has to do first."""
        token, ends = await self._request(pod)
        now = self._clock.now()
        share = _REFRESH - _SPREAD * self._chance()
        refresh = now + timedelta(seconds=(ends - now).total_seconds() * share)
        authority = await self._authority(objects.namespace(pod))
        return Grant(
            secret(pod, self._identity, str(link.target), token, authority, refresh), refresh
        )

    async def _request(self, pod: Object) -> tuple[str, datetime]:
        account = str(objects.spec(pod).get("serviceAccountName") or "default")
        bound = {"apiVersion": "v1", "kind": "Pod"}
        bound |= {"name": objects.name(pod), "uid": objects.uid(pod)}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFE, "boundObjectRef": bound},
        }
        try:
            answer = await self._local.create(
                *(kinds.SERVICE_ACCOUNTS, body, objects.namespace(pod)),
                name=account,
                subresource="token",
            )
        except Denied as error:
            raise ConfigError(
                f"the agent may not make tokens: {error.message}; run kubectl create "
                f"clusterrolebinding {_MINTER} --clusterrole={_MINTER} "
                f"--serviceaccount=vnode:vnode, or remove annotation {keys.TOKENS} of the Target"
            ) from error

        status = objects.status(answer)
        ends = objects.parse_timestamp(str(status.get("expirationTimestamp")))
        return str(status["token"]), ends or self._clock.now() + timedelta(seconds=LIFE)

    async def _authority(self, namespace: str) -> str:
        try:
            found = await self._local.get(kinds.CONFIG_MAPS, ROOT_CA, namespace)
        except NotFound as error:
            raise ConfigError(
                f"ConfigMap {ROOT_CA} of namespace {namespace} is not there yet: pods need it to "
                "trust the API server"
            ) from error

        return str((found.get("data") or {}).get("ca.crt") or "")


def secret(
    pod: Object, identity: Identity, target: str, token: str, authority: str, refresh: datetime
) -> Object:
    """The Secret that stands for the token volume of a pod: pure."""
    files = {"token": token, "ca.crt": authority, "namespace": objects.namespace(pod)}
    return {
        "metadata": {
            "name": names.token_secret(objects.name(pod), objects.uid(pod)),
            "namespace": objects.namespace(pod),
            "labels": {
                keys.PARENT_UID: objects.uid(pod),
                keys.PARENT_CLUSTER_NAME: identity.name,
                keys.TOKEN: "",
            },
            "annotations": {
                keys.PARENT_NAMESPACE: objects.namespace(pod),
                keys.PARENT_NAME: objects.name(pod),
                keys.PARENT_CLUSTER_UID: identity.uid,
                keys.TARGET: target,
                keys.TOKEN_REFRESH: objects.timestamp(refresh),
            },
        },
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in files.items()},
    }
