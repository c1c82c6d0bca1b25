"""Finds what a pod refers to in its own namespace.

That is ConfigMaps, Secrets, volume claims, device claims and their templates, and its service
account unless it is the default one.

Pure. A bound proxy pod is kept without most of its spec (`pods.proxy.trim`); `keeping` has the
references outlive that, in a field of their own: one shared tuple for all pods with equal
references.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from vnode.api import device_claims, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.service_tokens import ROOT_CA
from vnode.telemetry import audit

DEFAULT_ACCOUNT: Final = "default"
"""The service account that Kubernetes puts into every namespace."""

FIELD: Final = "references"
"""Where a trimmed pod has them; no field of Kubernetes."""

MOST: Final = 500
"""References of one pod that follow it: with more it does not go to a target."""

SHARED: Final = 32
"""References of a pod that are shared with others, and so stay for a while when it has gone."""

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


class Ref(NamedTuple):
    """One object of the source, by kind and name."""

    kind: Kind
    namespace: str
    name: str

    @property
    def subject(self) -> audit.Subject:
        """The object, as one on whose behalf something is done."""
        return audit.subject(self.kind, objects.join_key(self.namespace, self.name))

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.name}"


class ReferenceRequirement(enum.IntEnum):
    """What becomes of a pod without the object, the worst first."""

    MANDATORY = enum.auto()  # a container does not start
    OPTIONAL = enum.auto()
    IMAGE_PULL = enum.auto()  # some images may not be pulled


_Found: TypeAlias = tuple[Kind, str, ReferenceRequirement]
"""Kind, name ("" for none) and optionality of one reference."""


def of(pod: Object) -> tuple[Ref, ...]:
    """Return what a pod refers to, optional or not, in a stable order.

    Of more than `MOST`, the first of its specification, and one more than that.
    """
    kept: tuple[Ref, ...] | None = pod.get(FIELD)
    return _find(pod) if kept is None else kept


def keeping(trim: Callable[[Object], Object]) -> Callable[[Object], Object]:
    """Wrap a trim function so that `of` still works on the trimmed pod."""

    def trim_but_keep(pod: Object) -> Object:
        trimmed = trim(pod)
        refs = () if trimmed is pod else _find(pod)
        if len(refs) <= SHARED:
            refs = _shared(refs)

        return {**trimmed, FIELD: refs} if refs else trimmed

    return trim_but_keep


@lru_cache(maxsize=4096)
def _shared(refs: tuple[Ref, ...]) -> tuple[Ref, ...]:
    """Return the first of all equal tuples."""
    return refs


def _find(pod: Object) -> tuple[Ref, ...]:
    return tuple(sorted(optionalities(pod), key=_order))


def refusal(pod: Object) -> str:
    """Return why a pod with too many references does not go to a target; "" if it may go."""
    if len(of(pod)) <= MOST:
        return ""

    return (
        f"the pod refers to more than {MOST} ConfigMaps, Secrets, claims and service accounts, and "
        f"{MOST} may follow a pod: have it refer to fewer, for instance by putting several into one"
    )


def optionalities(pod: Object) -> dict[Ref, ReferenceRequirement]:
    """Return what a whole pod refers to, each with the strongest of its references.

    It ends with the first that is beyond `MOST`.
    """
    spec, namespace = objects.spec(pod), objects.namespace(pod)
    strongest: dict[Ref, ReferenceRequirement] = {}
    for kind, name, optionality in _references(spec):
        if name and name != ROOT_CA:
            ref = Ref(kind, namespace, name)
            strongest[ref] = min(strongest.get(ref, optionality), optionality)
            if len(strongest) > MOST:
                break

    return strongest


def _references(spec: Object) -> Iterator[_Found]:
    account = str(spec.get("serviceAccountName") or "")
    if account != DEFAULT_ACCOUNT:
        yield kinds.SERVICE_ACCOUNTS, account, ReferenceRequirement.MANDATORY

    for entry in spec.get("imagePullSecrets") or ():
        yield kinds.SECRETS, _name(entry), ReferenceRequirement.IMAGE_PULL

    for volume in spec.get("volumes") or ():
        yield from _in_volume(volume)

    for kind, name in device_claims.of(spec):
        yield kind, name, ReferenceRequirement.MANDATORY

    for field in _CONTAINERS:
        for container in spec.get(field) or ():
            yield from _in_container(container)


def _order(ref: Ref) -> tuple[str, str]:
    return ref.kind.plural, ref.name


def _in_container(container: Object) -> Iterator[_Found]:
    for entry in container.get("envFrom") or ():
        yield _selected(kinds.CONFIG_MAPS, entry.get("configMapRef"))
        yield _selected(kinds.SECRETS, entry.get("secretRef"))

    for entry in container.get("env") or ():
        source = entry.get("valueFrom") or {}
        yield _selected(kinds.CONFIG_MAPS, source.get("configMapKeyRef"))
        yield _selected(kinds.SECRETS, source.get("secretKeyRef"))


def _in_volume(volume: Object) -> Iterator[_Found]:
    yield _selected(kinds.CONFIG_MAPS, volume.get("configMap"))
    yield _selected(kinds.SECRETS, volume.get("secret"), "secretName")
    yield _selected(kinds.SECRETS, volume.get("azureFile"), "secretName")
    yield _selected(kinds.CLAIMS, volume.get("persistentVolumeClaim"), "claimName")
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield _selected(kinds.CONFIG_MAPS, source.get("configMap"))
        yield _selected(kinds.SECRETS, source.get("secret"))

    for driver in _dicts(volume.values()):
        yield _selected(kinds.SECRETS, driver.get("secretRef"))
        yield _selected(kinds.SECRETS, driver.get("nodePublishSecretRef"))


def _selected(kind: Kind, reference: Any, field: str = "name") -> _Found:
    is_optional = bool((reference or {}).get("optional"))
    optionality = ReferenceRequirement.OPTIONAL if is_optional else ReferenceRequirement.MANDATORY
    return kind, _name(reference, field), optionality


def _dicts(values: Iterable[Any]) -> Iterator[Object]:
    return (value for value in values if isinstance(value, dict))


def _name(reference: Any, field: str = "name") -> str:
    return str((reference or {}).get(field) or "")
