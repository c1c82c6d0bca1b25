"""Builds the copy of a Service or Ingress: pure.

The selector of a Service is renamed as the labels of delegate pods are, and selects those of its
own source (`own_delegates`). The target assigns its own addresses. The annotations are those of
Admiralty (docs/admiralty-contract.md, section 11), and those by which Cilium merges Services of one
name in a mesh of clusters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, cast

from vnode.api import cluster_things, keys, kinds, objects
from vnode.api.cluster_things import LAST_APPLIED
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.following import copies, exposure, packed_specs
from vnode.following.references import Ref
from vnode.runtime.target_options import NO_OPTIONS, TargetOptions

Relabel = Callable[[dict[str, str], str], dict[str, str]]
"""Labels as a delegate has them, given the regular expression of those that are kept."""

CERTIFICATES: Final = 100
"""Secrets that an Ingress names for TLS, and that follow it."""
BACKENDS: Final = 500
"""Services that an Ingress names, and by one of which it follows."""
SELECTED: Final = 1_000
"""Labels by which a Service selects pods that it follows."""

_LOOKED_AT: Final = packed_specs.PARTS // 2  # entries of a list; no more fit in what follows
_BACKENDS: Final = "backends"  # fields of Ingresses whose specification is packed, as the next one
_CERTIFICATES: Final = "certificates"

_HEADLESS: Final = "None"
_NO_LABELS: Final[Mapping[str, str]] = {}


def selector(service: Object) -> dict[str, str]:
    """Return the labels of the pods behind a Service of the source; empty if it may not follow."""
    annotations, spec = objects.annotations(service), objects.spec(service)
    if (
        keys.IS_DELEGATE in annotations
        or keys.NO_FOLLOW in annotations
        or spec.get("type") == "ExternalName"
    ):
        return {}

    labels = spec.get("selector") or {}
    return labels if len(labels) <= SELECTED else {}


def backends(ingress: Object) -> Iterator[str]:
    """Yield the names of an Ingress's backend Services, the first ones; none if it may not
    follow."""
    if not _stays(ingress):
        yield from _names(ingress, _BACKENDS)


def certificates(ingress: Object) -> Iterator[Ref]:
    """Yield the Secrets that an Ingress names for TLS, the first ones; none if it may not
    follow."""
    names = () if _stays(ingress) else _names(ingress, _CERTIFICATES)
    for name in names:
        yield Ref(kinds.SECRETS, objects.namespace(ingress), name)


def ingress_remark(ingress: Object) -> str:
    """Return what does not follow with an Ingress; "" if all does."""
    names = dict.fromkeys(_certificates(objects.spec(ingress)))
    if len(names) <= CERTIFICATES:
        return ""

    return (
        f"with the first {CERTIFICATES} of the Secrets that it names for TLS: divide it into "
        "several Ingresses to have the others follow as well"
    )


def _names(ingress: Object, field: str) -> Iterable[str]:
    """Return the first names of a field of _NAMES; as they were kept, if the object is packed."""
    if field in ingress:
        return cast(Iterable[str], ingress[field])

    found, most = _NAMES[field]
    seen: dict[str, None] = {}
    for name in found(objects.spec(ingress)):
        seen[name] = None
        if len(seen) == most:
            break

    return seen


def _backends(spec: Object) -> Iterator[str]:
    rules = itertools.islice(spec.get("rules") or (), _LOOKED_AT)
    listed = ((rule.get("http") or {}).get("paths") or () for rule in rules)
    paths = itertools.chain(
        ({"backend": spec.get("defaultBackend")},), itertools.chain.from_iterable(listed)
    )
    for path in itertools.islice(paths, _LOOKED_AT):
        if name := ((path.get("backend") or {}).get("service") or {}).get("name"):
            yield str(name)


def _certificates(spec: Object) -> Iterator[str]:
    for entry in itertools.islice(spec.get("tls") or (), _LOOKED_AT):
        if name := entry.get("secretName"):
            yield str(name)


_NAMES: Final[Mapping[str, tuple[Callable[[Object], Iterator[str]], int]]] = {
    _BACKENDS: (_backends, BACKENDS),
    _CERTIFICATES: (_certificates, CERTIFICATES),
}


def _stays(ingress: Object) -> bool:
    annotations = objects.annotations(ingress)
    return keys.IS_DELEGATE in annotations or keys.NO_FOLLOW in annotations


def service(
    original: Object,
    identity: Identity,
    relabel: Relabel,
    options: TargetOptions = NO_OPTIONS,
    present: Object | None = None,
    source: Mapping[str, str] = _NO_LABELS,
) -> Object:
    """Build the copy of a Service, of which there may be one already.

    `source` are the labels of delegates by which it leaves out those of other sources.
    """
    spec = exposure.service_spec(original, options, present)
    if is_headless(original):
        spec["clusterIP"] = _HEADLESS

    kept = objects.annotations(original).get(keys.NO_PREFIX_LABEL_REGEXP, "")
    spec["selector"] = {**relabel(spec.get("selector") or {}, kept), **source}
    own = dict.fromkeys(keys.CILIUM_GLOBAL, "true")
    is_balancer = exposure.has_balancer({"spec": spec}) and exposure.has_balancer(present)
    return _copy(original, identity, spec, own, options, present if is_balancer else None)


def is_headless(service: Object) -> bool:
    """Tell whether a Service asks for no address; one created without can never get one."""
    return objects.spec(service).get("clusterIP") == _HEADLESS


def ingress(
    original: Object,
    identity: Identity,
    options: TargetOptions = NO_OPTIONS,
    present: Object | None = None,
) -> Object:
    """Build the copy of an Ingress, of which there may be one already."""
    spec = exposure.ingress_spec(original, options)
    own = exposure.class_annotation(original, options.ingress_classes)
    return _copy(original, identity, spec, own, options, present)


def _copy(
    original: Object,
    identity: Identity,
    spec: Object,
    more: dict[str, str],
    options: TargetOptions,
    present: Object | None,
) -> Object:
    """Build a copy; what is left to one with a load balancer is that of `present`."""
    own = {keys.IS_DELEGATE: "", keys.GLOBAL: "true", **more}
    if not options.follows_anyway(cluster_things.EXTERNAL_DNS):
        own[cluster_things.DNS_CONTROLLER] = "vnode.dev"

    kept = exposure.kept_annotations(original, present)
    meta = copies.metadata(
        original,
        identity,
        own,
        spec=_without_node_ports(spec),
        anyway=lambda name: name in kept or options.follows_anyway(name),
    )
    return {"metadata": meta, "spec": spec}


def without_node_ports(service: Object) -> Object | None:
    """Return a Service whose node ports the target may choose; None if it names none."""
    spec = objects.spec(service)
    free = _without_node_ports(spec)
    return None if free == spec else {**service, "spec": free}


def _without_node_ports(spec: Object) -> Object:
    if not (ports := spec.get("ports")):
        return spec

    free = [{k: v for k, v in port.items() if k != "nodePort"} for port in ports]
    return {**spec, "ports": free}


def is_up_to_date(copy: Object, wanted: Object) -> bool:
    """Tell whether the copy was made of that specification, and still has all of it.

    Other fields are the target's, which fills in addresses, ports and defaults. So a field that the
    original has lost shows only in the digest of what was sent.
    """
    return copies.has_all_of(copy, wanted, _without_node_ports(objects.spec(wanted)))


def trim(obj: Object) -> Object:
    """Return what is kept of the copy of a Service or Ingress."""
    return {**_trimmed(obj), "spec": objects.spec(obj)}


def trim_service(obj: Object) -> Object:
    """Return what is kept of a Service of the source."""
    return {**_trimmed(obj), **packed_specs.pack(obj, _short_service)}


def trim_ingress(obj: Object) -> Object:
    """Return what is kept of an Ingress of the source."""
    kept = {**_trimmed(obj), **packed_specs.pack(obj, lambda _spec: {})}
    if packed_specs.is_packed(kept):
        for field in _NAMES:
            kept[field] = tuple(_names(obj, field))

    return kept


def _short_service(spec: Object) -> Object:
    short: Object = {field: spec[field] for field in ("type", "selector") if field in spec}
    if len(short.get("selector") or ()) > SELECTED:
        del short["selector"]

    return short


def _trimmed(obj: Object) -> Object:
    meta = objects.metadata(obj)
    annotations = {k: v for k, v in objects.annotations(obj).items() if k != LAST_APPLIED}
    status = {k: v for k, v in objects.status(obj).items() if k == "loadBalancer"}
    return {"metadata": {**meta, "annotations": annotations}, "status": status}
