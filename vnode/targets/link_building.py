"""Builds the link to one target: what of it is watched, what is kept of that, and how it is found.

A target's chaperons are found by the pods that they are made for. Which are ours, others in the
target do not decide: whoever writes chaperons there can claim anything. Nothing here waits or asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from vnode.api import keys, kinds, objects, quota_shapes, shapes
from vnode.api.clock import Clock
from vnode.api.identity import (
    Identity,
    is_in_namespace_of_parent,
    is_made_for_parent,
    parent_key,
)
from vnode.api.objects import Object
from vnode.api.shared_strings import sharing
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.link import OTHERS_INDEX, PARENT_KEY_INDEX, PARENT_UID_INDEX, Link
from vnode.runtime.link_health import CONNECTING, LinkHealth
from vnode.targets.kept_chaperons import trim_chaperon
from vnode.targets.model import TargetSpec

_Indexes: TypeAlias = dict[str, Callable[[Object], Iterable[str]]]


def make(client: Client, spec: TargetSpec, identity: Identity, clock: Clock) -> Link:
    """Return a link by `client` that knows nothing yet; none of its informers runs."""
    owns = partial(_owns, spec, identity)
    namespace = spec.key.namespace or None
    chaperons = Informer(
        client,
        kinds.POD_CHAPERONS,
        namespace=namespace,
        label_selector=identity.selector,
        trim=sharing(trim_chaperon),
        accept=shapes.is_chaperon,
        indexes=_indexes(spec, identity, owns),
    )
    summaries = Informer(
        client, kinds.CLUSTER_SUMMARIES, trim=shapes.trim_summary, accept=shapes.is_summary
    )
    return Link(
        spec.key,
        client,
        chaperons=chaperons,
        summaries=summaries,
        quotas=_quotas(client, namespace),
        health=LinkHealth(False, CONNECTING, "connecting to the target", clock.now()),
        labels_excluded=spec.labels_excluded,
        is_self=spec.is_self,
        options=spec.options,
        owns=owns,
    )


def _owns(spec: TargetSpec, identity: Identity, chaperon: Object) -> bool:
    """Tell whether the chaperon is ours, and not of another Target that leads to the same cluster,
    nor planted in a namespace by who has no rights in that of its parent."""
    return (
        spec.key.sent(chaperon) and identity.owns(chaperon) and is_in_namespace_of_parent(chaperon)
    )


def _indexes(spec: TargetSpec, identity: Identity, owns: Callable[[Object], bool]) -> _Indexes:
    def parent_uid(chaperon: Object) -> Iterable[str]:
        if owns(chaperon):
            yield objects.labels(chaperon).get(keys.PARENT_UID, "")

    def parent(chaperon: Object) -> Iterable[str]:
        if owns(chaperon) and is_made_for_parent(chaperon):
            yield parent_key(chaperon)

    def parent_elsewhere(chaperon: Object) -> Iterable[str]:
        ours = identity.surely_owns(chaperon) and is_made_for_parent(chaperon)
        if ours and not spec.key.sent(chaperon):
            yield parent_key(chaperon)

    return {
        PARENT_UID_INDEX: parent_uid,
        PARENT_KEY_INDEX: parent,
        OTHERS_INDEX: parent_elsewhere,
    }


def _quotas(client: Client, namespace: str | None) -> tuple[Informer, ...]:
    """Return informers of what the account of a Target need not be allowed to read."""
    read = (
        (kinds.RESOURCE_QUOTAS, quota_shapes.trim_quota, quota_shapes.is_quota),
        (kinds.LIMIT_RANGES, quota_shapes.trim_limit_range, quota_shapes.is_limit_range),
    )
    return tuple(
        Informer(client, kind, namespace=namespace, trim=trim, accept=accept, optional=True)
        for kind, trim, accept in read
    )
