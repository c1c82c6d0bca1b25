"""Builds the copy of a Service or Ingress: pure.

The selector of a Service is renamed as the labels of delegate pods are, and selects those of its
own source (`own_delegates`). The target assigns its own addresses. The annotations are those of
Admiralty (docs/admiralty-contract.md, section 11), and those by which Cilium merges Services of one
name in a mesh of clusters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from vnode.api import cluster_things, keys, kinds, objects
from vnode.api.cluster_things import LAST_APPLIED
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.following import copies, exposure
from vnode.following.references import Ref
from vnode.runtime.target_options import NO_OPTIONS, TargetOptions

Relabel = Callable[[dict[str, str], str], dict[str, str]]
"""Labels as a delegate has them, given the regular expression of those that are kept."""

CERTIFICATES: Final = 100
"""Secrets that an Ingress names for TLS, and that follow it."""
BACKENDS: Final = 500
"""Services that an Ingress names, and by one of which it follows."""

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

    return spec.get("selector") or {}


def backends(ingress: Object) -> Iterator[str]:
    """Yield the names of an Ingress's backend Services, the first ones; none if it may not
    follow."""
    if _stays(ingress):
        return

    spec = objects.spec(ingress)
    paths = [{"backend": spec.get("defaultBackend")}]
    for rule in spec.get("rules") or ():
        paths += (rule.get("http") or {}).get("paths") or ()

    services = ((path.get("backend") or {}).get("service") or {} for path in paths)
    names = dict.fromkeys(str(name) for each in services if (name := each.get("name")))
    yield from itertools.islice(names, BACKENDS)


def certificates(ingress: Object) -> Iterator[Ref]:
    """Yield the Secrets that an Ingress names for TLS, the first ones; none if it may not
    follow."""
    names = () if _stays(ingress) else _certificates(ingress)
    for name in itertools.islice(names, CERTIFICATES):
        yield Ref(kinds.SECRETS, objects.namespace(ingress), name)


def ingress_remark(ingress: Object) -> str:
    """Return what does not follow with an Ingress; "" if all does."""
    if len(_certificates(ingress)) <= CERTIFICATES:
        return ""

    return (
        f"with the first {CERTIFICATES} of the Secrets that it names for TLS: divide it into "
        "several Ingresses to have the others follow as well"
    )


def _certificates(ingress: Object) -> dict[str, None]:
    listed = objects.spec(ingress).get("tls") or ()
    return dict.fromkeys(str(name) for each in listed if (name := each.get("secretName")))


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
    """Return what is kept of a Service or Ingress, original or copy."""
    meta = objects.metadata(obj)
    annotations = {k: v for k, v in objects.annotations(obj).items() if k != LAST_APPLIED}
    status = {k: v for k, v in objects.status(obj).items() if k == "loadBalancer"}
    return {
        "metadata": {**meta, "annotations": annotations},
        "spec": objects.spec(obj),
        "status": status,
    }
