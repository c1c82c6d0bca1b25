"""Decides how a Service or Ingress is exposed in a target: by its table, and its Target. Pure.

A load balancer is asked for in a target only if all that the object says about how it is reached
holds there, too: one without the certificate, the security group or the internal pool of its
original would be reached by others. Where something stays, a Service goes without a load balancer,
and an Ingress does not go, unless the Target says otherwise.

A copy that has a load balancer already keeps it, whatever rule it was made by: users may depend on
it. What two clusters would fight over goes from that one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from vnode.api import cluster_bound, enumeration, keys, objects
from vnode.api.cluster_things import INGRESS_CLASS
from vnode.api.objects import Object
from vnode.following import copies
from vnode.runtime.target_options import TargetOptions

_BALANCER: Final = "LoadBalancer"
_OF_BALANCERS: Final = (
    "loadBalancerIP",
    "loadBalancerClass",
    "loadBalancerSourceRanges",
    "allocateLoadBalancerNodePorts",
    "externalTrafficPolicy",
)
"""Fields of a Service that one of type ClusterIP must not have, or makes nothing of."""
_OF_BACKENDS: Final = (
    "cloud.google.com/backend-config",
    "beta.cloud.google.com/backend-config",
)
"""Annotations of Services that say what Google's Ingresses make of them."""
_CURE: Final = (
    f"annotate the Target with {keys.FOLLOW_ANYWAY} to let it travel, or with "
    f"{keys.LOAD_BALANCERS}=true to have a load balancer without it"
)


def has_balancer(service: Object | None) -> bool:
    """Tell whether a Service is of type LoadBalancer."""
    return objects.spec(service or {}).get("type") == _BALANCER


def left(original: Object, options: TargetOptions) -> list[str]:
    """Return what stays of a Service or Ingress that says how its load balancer is reached."""
    fields = objects.spec(original)
    return cluster_bound.reach_left(objects.annotations(original), fields, options.follows_anyway)


def is_exposed(service: Object, options: TargetOptions, present: Object | None) -> bool:
    """Tell whether a Service, of which there may be a copy, has a load balancer in the target."""
    if not has_balancer(service) or options.load_balancers is False:
        return False

    return bool(options.load_balancers or has_balancer(present) or not left(service, options))


def service_spec(original: Object, options: TargetOptions, present: Object | None) -> Object:
    """Return the specification of a copy, but for its selector and its addresses."""
    stays = cluster_bound.staying_fields("Service", options.follows_anyway)
    spec = {k: v for k, v in objects.spec(original).items() if k not in stays}
    if not has_balancer(original):
        return spec

    if not is_exposed(original, options, present):
        return _internal(spec)

    own = str(spec.get("loadBalancerClass") or "")
    name = options.load_balancer_classes.get(own, own)
    if has_balancer(present):  # it cannot change, and the mapping may have
        name = str(objects.spec(present or {}).get("loadBalancerClass") or "")

    spec.pop("loadBalancerClass", None)
    return {**spec, "loadBalancerClass": name} if name else spec


def _internal(spec: Object) -> Object:
    kept = {k: v for k, v in spec.items() if k not in _OF_BALANCERS}
    ports = [{k: v for k, v in p.items() if k != "nodePort"} for p in spec.get("ports") or ()]
    return {**kept, "type": "ClusterIP", **({"ports": ports} if ports else {})}


def service_remark(original: Object, options: TargetOptions, present: Object | None) -> str:
    """Return what to tell of a Service that has no load balancer in a target; "" if it has."""
    if not has_balancer(original) or is_exposed(original, options, present):
        return ""

    if options.load_balancers is False:
        return f"without a load balancer, as annotation {keys.LOAD_BALANCERS} of the Target says"

    return f"without a load balancer, since {_these(left(original, options))} here: {_CURE}"


def ingress_refusal(original: Object, backends: Iterable[Object], options: TargetOptions) -> str:
    """Return why an Ingress with these backend Services stays at home; "" if it follows."""
    if options.load_balancers:
        return ""

    if options.load_balancers is False:
        return f"annotation {keys.LOAD_BALANCERS} of the Target says that none follows"

    stays = set(left(original, options))
    for service in backends:  # of which there may be hundreds, each with thousands of annotations
        named = objects.annotations(service)
        stays.update(n for n in _OF_BACKENDS if n in named and not options.follows_anyway(n))

    return f"{_these(sorted(stays))} here: {_CURE}" if stays else ""


def _these(names: list[str]) -> str:
    return f"{enumeration.some(names, 3)} {'stays' if len(names) == 1 else 'stay'}"


def kept_annotations(original: Object, present: Object | None) -> set[str]:
    """Return what stays by the table, but is on a copy that has followed already, and stays there:
    settings of a load balancer that is in use, and no addresses."""
    if present is None:
        return set()

    return {
        name
        for name in copies.followed_annotations(present)
        if name in objects.annotations(original)
        and cluster_bound.thing(name).is_reach
        and not cluster_bound.is_address(name)
    }


def ingress_spec(original: Object, options: TargetOptions) -> Object:
    """Return the specification of the copy of an Ingress."""
    spec = dict(objects.spec(original))
    own = str(spec.pop("ingressClassName", None) or "")
    by_annotation = INGRESS_CLASS in objects.annotations(original)
    name = own if not own and by_annotation else options.ingress_classes.get(own, own)
    return {**spec, "ingressClassName": name} if name else spec


def class_annotation(original: Object, classes: Mapping[str, str]) -> dict[str, str]:
    """Return the annotation by which an older Ingress names its class, mapped."""
    own = objects.annotations(original).get(INGRESS_CLASS)
    return {} if own is None else {INGRESS_CLASS: classes.get(own, own)}
