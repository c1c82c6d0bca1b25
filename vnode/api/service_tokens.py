"""Finds which tokens of service accounts a pod has in its files: pure.

Admission mounts one in the usual place. A pod may ask for others by projected volumes of its own,
for another audience, life or path, and may have a Secret that is the token of an account, its own
or another. Where a target is given tokens of the source, all of them are keys of one Secret; the
code that creates it and the code that mounts it take the keys from here.

What a volume is says whose token it has, not where it is mounted: any other Secret in the usual
place is the user's, and is left as it is. Which Secrets are tokens of accounts a pod does not say;
the caller does, by name (`secrets`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from vnode.api import keys
from vnode.api.objects import Object, Objects

CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
LIFE: Final = 3600  # seconds; the default of a pod
TOKEN: Final = "token"  # noqa: S105 - a file, not a secret
AUTHORITY: Final = "ca.crt"
NAMESPACE: Final = "namespace"
FILES: Final = (TOKEN, AUTHORITY, NAMESPACE)
"""The files in the Secret of an account; admission mounts the same."""
ROOT_CA: Final = "kube-root-ca.crt"
"""The ConfigMap that Kubernetes puts into every namespace, each cluster its own."""
_ADMITTED: Final = "kube-api-access-"  # how admission names the volumes that it adds
_ADMITTED_LIFE: Final = 3607  # seconds; by it API servers know tokens whose life they extend


class WantedToken(NamedTuple):
    """A token that a pod asks for; "" as audience means the API server's own.

    `secret` names the Secret that is the token of an account; "" for the pod's own account.
    """

    audience: str
    seconds: int
    secret: str = ""

    @property
    def key(self) -> str:
        """The key of the token in the Secret of the pod."""
        if self.secret:
            return f"{TOKEN}-of-{_digest(self.secret)}"

        if not self.audience and self.seconds == LIFE:
            return TOKEN

        return f"{TOKEN}-{_digest(f'{self.seconds} {self.audience}')}"


def of_secret(name: str) -> WantedToken:
    """Return the token that stands for the Secret of an account."""
    return WantedToken("", LIFE, name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def of(spec: Object, secrets: Collection[str] = ()) -> dict[str, WantedToken]:
    """Return all tokens that a pod mounts, by key."""
    found = {}
    for volume in spec.get("volumes") or ():
        for token in projected(volume):
            found[wanted(token).key] = wanted(token)

        for secret in in_volume(volume):
            if secret.name in secrets:
                found[of_secret(secret.name).key] = of_secret(secret.name)

    return found


def need_authority(spec: Object, secrets: Collection[str] = ()) -> bool:
    """Tell whether a volume with a token has the CA of its API server beside it."""
    return any(
        any(secret.name in secrets for secret in in_volume(volume))
        or (any(projected(volume)) and any(map(is_authority, sources(volume))))
        for volume in spec.get("volumes") or ()
    )


def admitted_volumes(spec: Object) -> set[str]:
    """Return the volumes with the token that admission has mounted, as it will in a target.

    Admission leaves no container without something in the usual place.
    """
    if spec.get("automountServiceAccountToken") is False:
        return set()

    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            if not any(map(_is_in_usual_place, mounts(container))):
                return set()

    mounted = in_usual_place(spec)
    return {
        volume["name"]
        for volume in spec.get("volumes") or ()
        if volume["name"] in mounted and _is_admitted(volume)
    }


def _is_admitted(volume: Object) -> bool:
    """Tell whether admission has made a volume: users name theirs alike, with other files or lives.

    It has one token for the API server, whose life is that of no user's by chance.
    """
    tokens = list(projected(volume))
    others = [s for s in sources(volume) if not (is_authority(s) or "downwardAPI" in s)]
    return (
        volume["name"].startswith(_ADMITTED)
        and len(tokens) == len(others) == 1
        and tokens[0].get("expirationSeconds") == _ADMITTED_LIFE
        and not tokens[0].get("audience")
    )


def speaking_volumes(spec: Object, secrets: Collection[str] = ()) -> set[str]:
    """Return the volumes by which a container can speak to the API server as an account."""
    usual = in_usual_place(spec)
    return {
        volume["name"]
        for volume in spec.get("volumes") or ()
        if any(volume["name"] in usual or not token.get("audience") for token in projected(volume))
        or any(secret.name in secrets for secret in in_volume(volume))
    }


def in_usual_place(spec: Object) -> set[str]:
    """Return the names of the volumes, of whatever kind, that are mounted in the usual place."""
    return {
        mount["name"]
        for container in _containers(spec)
        for mount in mounts(container)
        if _is_in_usual_place(mount)
    }


def _is_in_usual_place(mount: Object) -> bool:
    return mount.get("mountPath") == keys.SERVICE_ACCOUNT_MOUNT


def mounts(container: Object) -> Objects:
    """Return `volumeMounts`."""
    return container.get("volumeMounts") or []


def sources(volume: Object) -> Objects:
    """Return the sources of a projected volume."""
    return (volume.get("projected") or {}).get("sources") or []


def is_authority(source: Object) -> bool:
    """Tell whether a projected source is the CA of the API server."""
    return (source.get("configMap") or {}).get("name") == ROOT_CA


class SecretUse(NamedTuple):
    """A Secret to which a pod refers."""

    name: str
    optional: bool = False
    renewed: bool = True
    """Whether the containers see it change: variables and `subPath` mounts do not."""


def secret_uses(spec: Object) -> Iterator[SecretUse]:
    """Yield the Secrets in volumes and variables of a pod."""
    fixed = {
        mount["name"]
        for container in _containers(spec)
        for mount in mounts(container)
        if mount.get("subPath") or mount.get("subPathExpr")
    }
    for volume in spec.get("volumes") or ():
        for use in in_volume(volume):
            yield use._replace(renewed=volume["name"] not in fixed)

    for container in _containers(spec):
        references = [each.get("secretRef") for each in container.get("envFrom") or ()]
        values = [each.get("valueFrom") or {} for each in container.get("env") or ()]
        for reference in (*references, *(value.get("secretKeyRef") for value in values)):
            yield from _use(reference, "name", renewed=False)


def in_volume(volume: Object) -> Iterator[SecretUse]:
    """Yield the Secrets in a volume."""
    yield from _use(volume.get("secret"), "secretName")
    for source in sources(volume):
        yield from _use(source.get("secret"), "name")


def _use(reference: Object | None, field: str, *, renewed: bool = True) -> Iterator[SecretUse]:
    if reference and (name := reference.get(field)):
        yield SecretUse(name, bool(reference.get("optional")), renewed)


def _containers(spec: Object) -> Iterator[Object]:
    for field in CONTAINERS:
        yield from spec.get(field) or ()


def projected(volume: Object) -> Iterator[Object]:
    """Yield the tokens that a volume projects."""
    for source in sources(volume):
        if token := source.get("serviceAccountToken"):
            yield token


def wanted(token: Object) -> WantedToken:
    """Return what a projected token asks for."""
    seconds = int(token.get("expirationSeconds") or LIFE)
    audience = str(token.get("audience") or "")
    return WantedToken(audience, LIFE if seconds == _ADMITTED_LIFE else seconds)
