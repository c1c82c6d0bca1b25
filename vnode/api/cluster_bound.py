"""Says what becomes of parts of an object on the way to another cluster, by `cluster_things`. Pure.

Unless it is in the table, an annotation travels. A Target may let what stays travel after all
(`vnode.dev/follow-anyway`). On the way back, what a target has written on a delegate comes to the
proxy, but for what controllers of the source would take for orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from vnode.api import keys
from vnode.api.cluster_things import (
    ANNOTATIONS,
    EXTERNAL_DNS,
    FIELDS,
    TABLE,
    ClusterThing,
    TravelFate,
)

_PREFIX_ENDS: Final = ("/", "-", ".")
_UNLISTED: Final = ClusterThing("all", "other annotations", TravelFate.TRAVELS, "")

_STAYS_THERE: Final = (
    keys.HAMI,  # which devices of a node its scheduler has chosen
    EXTERNAL_DNS,  # which names lead to a pod, and where to
    "external-dns.kubernetes.io/",
    "dns.alpha.kubernetes.io/",
    "consul.hashicorp.com/",  # of which service a pod is
    "k8s.ovn.org/",  # which addresses a pod has been given; the network of the source gives its own
    "argocd.argoproj.io/",  # whose a pod is: it would be deleted as one that is not wanted
    "meta.helm.sh/",
    "objectset.rio.cattle.io/",
    "kubernetes.io/config.",  # that a pod is a kubelet's own: API servers refuse the whole patch
)
"""What begins annotations that a target may write on a delegate, and that stay on it.

They are compared with thousands at once, and so are not rows of the table (docs/decisions/0142).
"""

Anyway = Callable[[str], bool]
"""Tells of an annotation, or of `spec.FIELD`, whether it travels though it stays by the table."""


def never(_name: str) -> bool:
    """Let nothing travel that stays by the table."""
    return False


@lru_cache(maxsize=4096)
def thing(annotation: str) -> ClusterThing:
    """Return the row that an annotation is in: that of the longest key or prefix that fits."""
    best, length = _UNLISTED, 0
    for each in ANNOTATIONS:
        for pattern in each.annotations:
            if len(pattern) > length and matches(pattern, annotation):
                best, length = each, len(pattern)

    return best


def matches(pattern: str, name: str) -> bool:
    """Tell whether a name is that of a pattern, or begins with it, where it is a prefix."""
    return name == pattern or (pattern.endswith(_PREFIX_ENDS) and name.startswith(pattern))


def travels(annotation: str, anyway: Anyway = never) -> bool:
    """Tell whether an annotation of an object travels with it."""
    found = thing(annotation)
    return found.fate is not TravelFate.STAYS or (found.may_travel and anyway(annotation))


def comes_back(annotation: str) -> bool:
    """Tell whether an annotation of a pod comes back from a target that has changed it.

    A target is believed what it reports, such as addresses of networks or results of a step. Orders
    are the source's to give.
    """
    return not annotation.startswith(_STAYS_THERE)


def staying_fields(of: str, anyway: Anyway = never) -> set[str]:
    """Return the fields of a specification that stay."""
    return {
        field
        for each in FIELDS
        if of in each.of.split(", ") and each.fate is TravelFate.STAYS
        for field in each.fields
        if not (each.may_travel and anyway(f"spec.{field}"))
    }


def reach_left(annotations: Iterable[str], fields: Iterable[str], anyway: Anyway) -> list[str]:
    """Return what stays of that says how a load balancer is reached, annotations and fields."""
    by_field = {field for each in FIELDS if each.is_reach for field in each.fields}
    left = [f"spec.{field}" for field in fields if field in by_field]
    left += [name for name in annotations if thing(name).is_reach]
    return sorted(name for name in left if not anyway(name))


def is_address(annotation: str) -> bool:
    """Tell whether two clusters would fight over what an annotation says."""
    return thing(annotation).is_address


def may_travel(pattern: str) -> bool:
    """Tell whether a Target may let travel what fits a pattern: some of it stays otherwise."""
    known = [p for each in TABLE if each.may_travel for p in each.annotations]
    known += [f"spec.{field}" for each in TABLE if each.may_travel for field in each.fields]
    return any(matches(pattern, one) or matches(one, pattern) for one in known)
