"""Finds what a pod refers to in its own namespace: ConfigMaps, Secrets and volume claims.

Pure. A bound proxy pod is kept without most of its spec (`pods.proxy.trim`); `keeping` has the
references outlive that, in a field of their own: one shared tuple for all pods with equal
references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

ROOT_CA: Final = "kube-root-ca.crt"
"""The ConfigMap that Kubernetes puts into every namespace, each cluster its own."""

FIELD: Final = "references"
"""Where a trimmed pod has them; no field of Kubernetes."""

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


class Ref(NamedTuple):
    """One object of the source, by kind and name."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.name}"


def of(pod: Object) -> tuple[Ref, ...]:
    """Return what a pod refers to, optional or not, in a stable order."""
    kept: tuple[Ref, ...] | None = pod.get(FIELD)
    return _find(pod) if kept is None else kept


def keeping(trim: Callable[[Object], Object]) -> Callable[[Object], Object]:
    """Wrap a trim function so that `of` still works on the trimmed pod."""

    def trim_but_keep(pod: Object) -> Object:
        trimmed = trim(pod)
        refs = () if trimmed is pod else _find(pod)
        return {**trimmed, FIELD: _shared(refs)} if refs else trimmed

    return trim_but_keep


@lru_cache(maxsize=4096)
def _shared(refs: tuple[Ref, ...]) -> tuple[Ref, ...]:
    """Return the first of all equal tuples."""
    return refs


def _find(pod: Object) -> tuple[Ref, ...]:
    spec, namespace = objects.spec(pod), objects.namespace(pod)
    found = {(kinds.SECRETS, _name(entry)) for entry in spec.get("imagePullSecrets") or ()}
    for volume in spec.get("volumes") or ():
        found.update(_in_volume(volume))

    for field in _CONTAINERS:
        for container in spec.get(field) or ():
            found.update(_in_container(container))

    refs = (Ref(kind, namespace, name) for kind, name in found if name)
    return tuple(sorted((ref for ref in refs if ref.name != ROOT_CA), key=_order))


def _order(ref: Ref) -> tuple[str, str]:
    return ref.kind.plural, ref.name


def _in_container(container: Object) -> Iterator[tuple[Kind, str]]:
    for entry in container.get("envFrom") or ():
        yield kinds.CONFIG_MAPS, _name(entry.get("configMapRef"))
        yield kinds.SECRETS, _name(entry.get("secretRef"))

    for entry in container.get("env") or ():
        source = entry.get("valueFrom") or {}
        yield kinds.CONFIG_MAPS, _name(source.get("configMapKeyRef"))
        yield kinds.SECRETS, _name(source.get("secretKeyRef"))


def _in_volume(volume: Object) -> Iterator[tuple[Kind, str]]:
    yield kinds.CONFIG_MAPS, _name(volume.get("configMap"))
    yield kinds.SECRETS, _name(volume.get("secret"), "secretName")
    yield kinds.SECRETS, _name(volume.get("azureFile"), "secretName")
    yield kinds.CLAIMS, _name(volume.get("persistentVolumeClaim"), "claimName")
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield kinds.CONFIG_MAPS, _name(source.get("configMap"))
        yield kinds.SECRETS, _name(source.get("secret"))

    for driver in _dicts(volume.values()):
        yield kinds.SECRETS, _name(driver.get("secretRef"))
        yield kinds.SECRETS, _name(driver.get("nodePublishSecretRef"))


def _dicts(values: Iterable[Any]) -> Iterator[Object]:
    return (value for value in values if isinstance(value, dict))


def _name(reference: Any, field: str = "name") -> str:
    return str((reference or {}).get(field) or "")
