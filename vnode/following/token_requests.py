"""Requests tokens of the source's service accounts, and packs them into a Secret for a target.

A token is bound to its proxy pod: the source's API server rejects it once that pod is deleted,
whatever a target keeps. One that stands for a Secret is bound to that Secret, since a pod can be
bound to no account but its own. It is never logged, and held no longer than it takes to write it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from vnode.api import keys, kinds, names, objects, service_tokens
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.service_tokens import AUTHORITY, NAMESPACE, ROOT_CA, WantedToken
from vnode.following.token_secrets import Holders
from vnode.kube import account_tokens
from vnode.kube.client import Client
from vnode.runtime.link import Link

_REFRESH: Final = 0.8  # of the life, as kubelets do
_SPREAD: Final = 0.1  # of the life: pods that came together do not refresh together
_MINTER: Final = "vnode-token-minter"


class IssuedToken(NamedTuple):
    """A Secret for a target, and the time at which to replace it."""

    secret: Object
    refresh: datetime


def wants(pod: Object, holders: Holders) -> bool:
    """Tell whether the pod mounts a token of its service account, or of a holder's."""
    return bool(service_tokens.of(objects.spec(pod), holders))


class TokenRequester:
    """Requests tokens of the source's API server. `chance` (0 to 1) spreads refreshes."""

    def __init__(
        self, local: Client, identity: Identity, clock: Clock, chance: Callable[[], float]
    ) -> None:
        self._local = local
        self._identity = identity
        self._clock = clock
        self._chance = chance

    async def mint(self, pod: Object, link: Link, holders: Holders) -> IssuedToken:
        """Request new tokens for a pod; ConfigError says what an administrator has to do first.

        They are refreshed together, before the first of them expires.
        """
        spec, namespace = objects.spec(pod), objects.namespace(pod)
        files, ends = {NAMESPACE: namespace}, []
        for key, token in service_tokens.of(spec, holders).items():
            files[key], end = await self._request(pod, token, holders)
            ends.append(end)

        if service_tokens.need_authority(spec, holders):
            files[AUTHORITY] = await self._authority(namespace)

        now = self._clock.now()
        share = _REFRESH - _SPREAD * self._chance()
        refresh = now + timedelta(seconds=(min(ends) - now).total_seconds() * share)
        return IssuedToken(secret(pod, self._identity, str(link.target), files, refresh), refresh)

    async def _request(
        self, pod: Object, token: WantedToken, holders: Holders
    ) -> tuple[str, datetime]:
        account = str(objects.spec(pod).get("serviceAccountName") or "default")
        bound = {"kind": "Pod", "name": objects.name(pod), "uid": objects.uid(pod)}
        if token.secret:
            holder = holders[token.secret]
            account = holder.account
            bound = {"kind": "Secret", "name": holder.name, "uid": holder.uid}

        bound["apiVersion"] = "v1"
        spec: Object = {"expirationSeconds": token.seconds, "boundObjectRef": bound}
        if token.audience:
            spec["audiences"] = [token.audience]

        try:
            granted = await account_tokens.request(
                self._local, objects.namespace(pod), account, spec
            )
        except Denied as error:
            raise ConfigError(
                f"the agent may not make tokens: {error.message}; run kubectl --namespace "
                f"{objects.namespace(pod)} create rolebinding {_MINTER} --clusterrole={_MINTER} "
                f"--serviceaccount=vnode:vnode, or remove annotation {keys.TOKENS} of the Target"
            ) from error

        return (
            granted.text,
            granted.ends or self._clock.now() + timedelta(seconds=token.seconds),
        )

    async def _authority(self, namespace: str) -> str:
        try:
            found = await self._local.get(kinds.CONFIG_MAPS, ROOT_CA, namespace)
        except NotFound as error:
            raise ConfigError(
                f"ConfigMap {ROOT_CA} of namespace {namespace} does not exist yet: pods need it to "
                "trust the API server"
            ) from error

        return str((found.get("data") or {}).get("ca.crt") or "")


def secret(
    pod: Object, identity: Identity, target: str, files: Mapping[str, str], refresh: datetime
) -> Object:
    """Build the Secret that stands for the token volumes of a pod: pure.

    The API server has the tokens of a bound pod name its node.
    """
    annotations = {
        keys.PARENT_NAMESPACE: objects.namespace(pod),
        keys.PARENT_NAME: objects.name(pod),
        keys.PARENT_CLUSTER_UID: identity.uid,
        keys.TARGET: target,
        keys.TOKEN_REFRESH: objects.timestamp(refresh),
    }
    if node := objects.node_name(pod):
        annotations[keys.TOKEN_NODE] = node

    return {
        "metadata": {
            "name": names.token_secret(objects.name(pod), objects.uid(pod)),
            "namespace": objects.namespace(pod),
            "labels": {
                keys.PARENT_UID: objects.uid(pod),
                keys.PARENT_CLUSTER_NAME: identity.name,
                keys.TOKEN: "",
            },
            "annotations": annotations,
        },
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in files.items()},
    }
