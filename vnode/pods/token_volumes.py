"""Removes or replaces tokens of service accounts in what travels to a target. No I/O.

Admission in the source has mounted one by a volume that only the source's kubelets could fill. If
it is removed, the target mounts one of its own account. If it is replaced, the same mounts show a
Secret that follows the pod (`vnode.following.tokens`), and the containers are told where the
source's API server is. Tokens that the pod projects itself are left to the target, or come from the
same Secret, as do Secrets that are tokens of accounts. All else is the user's, and stays as it is.

A pod that has no token from admission gets none in the target either.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from vnode.api import service_tokens
from vnode.api.objects import Object, Objects
from vnode.api.service_tokens import AUTHORITY, CONTAINERS, TOKEN, mounts

_VARIABLES: Final = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def drop(spec: Object) -> None:
    """Remove the token; `spec` is the caller's own, what is in it is not."""
    dropped = service_tokens.admitted_volumes(spec)
    if not dropped:
        _keep_others_away(spec)
        return

    for field in CONTAINERS:
        if field in spec:
            spec[field] = [_without(container, dropped) for container in spec[field]]

    spec["volumes"] = [v for v in spec.get("volumes") or () if v.get("name") not in dropped]


def replace(spec: Object, secret: str, api: tuple[str, str], secrets: Collection[str] = ()) -> None:
    """Take all tokens from that Secret; a pod that mounts none stays as it is.

    `secrets` names the Secrets that are tokens of accounts.
    """
    _keep_others_away(spec)
    if not service_tokens.of(spec, secrets):
        return

    spec["automountServiceAccountToken"] = False
    speaking = service_tokens.speaking_volumes(spec, secrets)
    tokens = _TokenSource(secret, secrets)
    spec["volumes"] = [tokens.volume(volume) for volume in spec.get("volumes") or ()]
    for field in CONTAINERS:
        if field in spec:
            spec[field] = [_with_address(container, api, speaking) for container in spec[field]]


def _keep_others_away(spec: Object) -> None:
    """Have admission in the target mount no token of its own.

    A pod without the name of an account has not been through the admission that mounts tokens, so
    that nothing is known of what its user wants.
    """
    if spec.get("serviceAccountName"):
        spec["automountServiceAccountToken"] = False


class _TokenSource:
    """Has volumes take their tokens from one Secret."""

    def __init__(self, secret: str, secrets: Collection[str]) -> None:
        self._secret = secret
        self._secrets = secrets

    def volume(self, volume: Object) -> Object:
        """Return a volume with the Secret's tokens, and with all else that the user has there."""
        if not service_tokens.of({"volumes": [volume]}, self._secrets):
            return volume

        if reference := volume.get("secret"):
            items = _items(reference, reference["secretName"])
            taken = {**reference, "secretName": self._secret, "items": items}
            return {**volume, "secret": taken}

        beside = any(service_tokens.projected(volume))
        sources = [self._source(each, beside) for each in service_tokens.sources(volume)]
        return {**volume, "projected": {**volume["projected"], "sources": sources}}

    def _source(self, source: Object, beside: bool) -> Object:
        if token := source.get("serviceAccountToken"):
            key = service_tokens.wanted(token).key
            return self._files({}, [{"key": key, "path": token.get("path")}])

        if beside and service_tokens.is_authority(source):
            reference = source["configMap"]
            return self._files(reference, reference.get("items") or [_file(AUTHORITY)])

        if (reference := source.get("secret") or {}).get("name") in self._secrets:
            return self._files(reference, _items(reference, reference["name"]))

        return source

    def _files(self, reference: Object, items: Objects) -> Object:
        return {"secret": {**reference, "name": self._secret, "items": items}}


def _file(name: str) -> Object:
    return {"key": name, "path": name}


def _items(reference: Object, name: str) -> Objects:
    """Return the files of the Secret of an account, by the keys of the pod's Secret."""
    items = reference.get("items") or [_file(file) for file in service_tokens.FILES]
    key = service_tokens.of_secret(name).key
    return [{**each, "key": key} if each["key"] == TOKEN else each for each in items]


def _without(container: Object, volumes: set[str]) -> Object:
    kept = [mount for mount in mounts(container) if mount.get("name") not in volumes]
    return {**container, "volumeMounts": kept} if kept != mounts(container) else container


def _with_address(container: Object, api: tuple[str, str], volumes: set[str]) -> Object:
    """Add the API server's address to the environment, except for variables that the user set."""
    if not any(mount.get("name") in volumes for mount in mounts(container)):
        return container

    env = container.get("env") or []
    present = {entry.get("name") for entry in env}
    pairs = zip(_VARIABLES, api, strict=True)
    added = [{"name": name, "value": value} for name, value in pairs if name not in present]
    return {**container, "env": [*added, *env]}
