"""Decodes a PlacementPolicy or ClusterPlacementPolicy into a `Policy`, strictly.

An API server that has the CRDs refuses most of what is wrong here. A policy may be older than they
are, though, or come from a file that `vnode plan` reads. Each error names the field, and the cure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from vnode.api import kinds, objects, properties, strict_decoding
from vnode.api.durations import seconds
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.api.label_selector import LabelSelector
from vnode.api.objects import Object
from vnode.placement.policies import decision_fields, failover_fields, move_fields
from vnode.placement.policies.decision_fields import DecisionRefSpec, PublishSpec
from vnode.placement.policies.failover_fields import FailoverSpec
from vnode.placement.policies.move_fields import DrainSpec, FailbackSpec, RescheduleSpec
from vnode.placement.policies.move_fields import PolicySpecPart as _SpecPart
from vnode.placement.policies.move_fields import Replicas as _Replicas
from vnode.planning.policy import Clusters, Mode, Overflow, PlacementTarget, Policy
from vnode.planning.seats import MAX_WEIGHT
from vnode.telemetry import audit

KINDS: Final = (kinds.PLACEMENT_POLICIES, kinds.CLUSTER_PLACEMENT_POLICIES)
_PLANNED: Final = (Mode.SPREAD, Mode.FILL)

_Weight = Annotated[int, msgspec.Meta(ge=0, le=MAX_WEIGHT)]
_Priority = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class _Property(_SpecPart, frozen=True):
    name: str
    operator: str
    values: tuple[str | int, ...] = ()


class _Clusters(_SpecPart, frozen=True):
    selector: LabelSelector = LabelSelector()
    names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    properties: tuple[_Property, ...] = ()
    decision_ref: DecisionRefSpec | None = None


class _Target(_SpecPart, frozen=True):
    cluster: str | None = None
    selector: LabelSelector | None = None
    weight: _Weight | None = None
    priority: _Priority | None = None
    min_replicas: _Replicas | None = None
    max_replicas: _Replicas | None = None


class _Overflow(_SpecPart, frozen=True):
    after_unschedulable_for: str = "1m"
    keep_unschedulable: bool = True
    max_candidates: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3


class _PolicySpec(_SpecPart, frozen=True):
    selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    joinable: bool | None = None
    priority: _Priority = 0
    group_by: str = ""
    clusters: _Clusters = _Clusters()
    mode: Mode = Mode.SPREAD
    targets: tuple[_Target, ...] = ()
    overflow: _Overflow | None = None
    failback: FailbackSpec | None = None
    drain: tuple[DrainSpec, ...] = ()
    reschedule: RescheduleSpec | None = None
    failover: FailoverSpec | None = None
    publish: PublishSpec | None = None


def kind_of(policy: Object) -> Kind:
    """Return the kind of an object from the API: a PlacementPolicy has a namespace."""
    return kinds.scoped(kinds.PLACEMENT_POLICIES, objects.namespace(policy))


def reference(policy: Object) -> str:
    """Return what messages call the object: `placementpolicy/web`."""
    return f"{kind_of(policy).kind.lower()}/{objects.name(policy)}"


def subject_of(policy: Policy) -> audit.Subject:
    """Return a policy as one on whose behalf something is done."""
    kind = kinds.scoped(kinds.PLACEMENT_POLICIES, policy.namespace)
    return audit.subject(kind, policy.key, uid=policy.uid)


def decode(obj: Object) -> Policy:
    """Decode a policy. Raises ConfigError, which says what to change."""
    raw = obj.get("spec")
    spec = strict_decoding.decode(_PolicySpec, {} if raw is None else raw, "spec")
    _check_mode(spec)
    overflow, reschedule = spec.overflow or _Overflow(), spec.reschedule or RescheduleSpec()
    namespace = objects.namespace(obj)
    _check_whose(spec, namespace)
    return Policy(
        name=reference(obj),
        namespace=namespace,
        uid=objects.uid(obj),
        selector=None if spec.selector is None else spec.selector.compiled("spec.selector"),
        namespaces=frozenset(spec.namespaces),
        joinable=bool(namespace or spec.selector is None or spec.joinable),
        mode=spec.mode,
        priority=spec.priority,
        group_by=spec.group_by,
        clusters=_clusters(spec.clusters),
        decision=decision_fields.decision(spec.clusters.decision_ref, namespace),
        targets=_targets(spec),
        overflow=Overflow(
            seconds(overflow.after_unschedulable_for, "spec.overflow.afterUnschedulableFor"),
            overflow.max_candidates,
            overflow.keep_unschedulable,
        ),
        failback=move_fields.failback(spec.failback or FailbackSpec()),
        drains=move_fields.drains(spec.drain),
        reschedule=frozenset(reschedule.when),
        failover=failover_fields.failover(spec.failover),
        publishing=decision_fields.publishing(spec.publish, objects.name(obj), namespace),
    )


def _check_whose(spec: _PolicySpec, namespace: str) -> None:
    """Refuse fields that mean nothing for pods of one namespace. Raises ConfigError."""
    if namespace and (spec.namespaces or spec.joinable is not None):
        field = "namespaces" if spec.namespaces else "joinable"
        raise ConfigError(f"spec.{field} is for ClusterPlacementPolicies: leave it out")

    if spec.selector is None and spec.joinable is False:
        raise ConfigError("without spec.selector and with joinable: false it is for no pod")


def _check_mode(spec: _PolicySpec) -> None:
    """Refuse fields that mean nothing in the policy's mode. Raises ConfigError."""
    if spec.mode not in _PLANNED and spec.overflow is not None:
        raise ConfigError(f"spec.overflow {_only_planned(spec.mode)}")

    for field in ("failback", "drain", "reschedule") if spec.mode is Mode.ANY else ():
        if getattr(spec, field) not in (None, ()):
            raise ConfigError(f"spec.{field} means nothing in mode Any: leave it out")

    for field in ("mode", "stabilization") if spec.mode is Mode.SINGLE and spec.failback else ():
        if getattr(spec.failback, field) is not None:
            raise ConfigError(f"spec.failback.{field} {_only_planned(spec.mode)}")


def named(policy: Policy) -> Iterable[tuple[str, str]]:
    """Yield the names of clusters that a policy needs, each with the field that has it."""
    for name in sorted(policy.clusters.names):
        yield "spec.clusters.names", name

    for number, target in enumerate(policy.targets):
        for name in target.clusters.names:
            yield f"spec.targets[{number}].cluster", name

    for number, drain in enumerate(policy.drains):
        yield f"spec.drain[{number}].cluster", drain.cluster


def _clusters(spec: _Clusters) -> Clusters:
    where = "spec.clusters"
    names, exclude = frozenset(spec.names), frozenset(spec.exclude)
    if both := sorted(names & exclude):
        raise ConfigError(f"{where}: {both[0]} is in names and in exclude: leave one out")

    try:
        required = [properties.compiled(p.name, p.operator, p.values) for p in spec.properties]
    except ConfigError as error:
        raise ConfigError(f"{where}.properties: {error}") from error

    selector = spec.selector.compiled(f"{where}.selector", of_nodes=True)
    return Clusters(selector, names, exclude, frozenset(required))


def _targets(spec: _PolicySpec) -> tuple[PlacementTarget, ...]:
    seen = set[str]()
    for number, target in enumerate(spec.targets):
        where = f"spec.targets[{number}]"
        if target.cluster in seen:
            raise ConfigError(f"{where}: an earlier entry is for {target.cluster}: leave one out")

        if target.cluster in spec.clusters.exclude:
            raise ConfigError(f"{where}: spec.clusters.exclude has {target.cluster}: leave one out")

        if target.cluster:
            seen.add(target.cluster)

        if spec.mode not in _PLANNED:
            _refuse_counts(target, spec.mode, where)

    return tuple(_target(target, f"spec.targets[{n}]") for n, target in enumerate(spec.targets))


def _refuse_counts(target: _Target, mode: Mode, where: str) -> None:
    given = (target.weight, target.priority, target.min_replicas, target.max_replicas)
    fields = ("weight", "priority", "minReplicas", "maxReplicas")
    for field, value in zip(fields, given, strict=True):
        if value is not None:
            raise ConfigError(f"{where}.{field} {_only_planned(mode)}")


def _target(spec: _Target, where: str) -> PlacementTarget:
    minimum, maximum = spec.min_replicas or 0, spec.max_replicas
    if maximum is not None and minimum > maximum:
        raise ConfigError(
            f"{where}: minReplicas {minimum} is above maxReplicas {maximum}: "
            "lower the one or raise the other"
        )

    if (spec.cluster is None) is (spec.selector is None):
        raise ConfigError(f"{where}: give exactly one of cluster and selector")

    if spec.selector is not None:
        clusters = Clusters(spec.selector.compiled(f"{where}.selector", of_nodes=True))
    elif spec.cluster:
        clusters = Clusters(names=frozenset((spec.cluster,)))
    else:
        raise ConfigError(f'{where}.cluster is ""')

    return PlacementTarget(clusters, spec.weight, spec.priority or 0, minimum, maximum)


def _only_planned(mode: Mode) -> str:
    return f"means nothing in mode {mode.value}: leave it out, or choose Spread or Fill"
