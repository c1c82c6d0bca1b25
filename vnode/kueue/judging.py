"""Finds out what the pods of a workload meet in each target, as the scheduler would.

Pods of a workload do not exist yet when it is asked for. So a proxy is made of each pod set's
template, as the webhook would make it after Kueue has added what it adds, and the scheduler's own
plugins judge it. How many of them fit, `deciding` counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, objects, packing, resources, saved_manifest
from vnode.api import shape as shapes
from vnode.api.limit_ranges import Nanos
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import Rows
from vnode.api.shape import Shape
from vnode.kueue import pod_defaults
from vnode.kueue.deciding import PodsThere, TargetRoom, Wanted
from vnode.kueue.promised_beside import PromisedBeside
from vnode.kueue.promised_room import PromisedPodSet
from vnode.kueue.workloads import PodSet
from vnode.scheduling.cache import Cache
from vnode.scheduling.framework import Framework
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import Status

_SAVED: Final = (keys.SOURCE_POD_MANIFEST, keys.MANIFEST_SIGNATURE)


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """The parts of the scheduler by which pods are judged.

    `as_proxy` returns the proxy that the webhook would make of a pod, `constraints` what of it
    chooses a node in the target. What the plugins in `lasting` have against a pod does not change
    with what runs; what those in `counted` guess is counted for all pods together instead.
    """

    framework: Framework
    cache: Cache
    as_proxy: Callable[[Object], Object]
    constraints: Callable[[Object], Object | None]
    lasting: frozenset[str]
    counted: frozenset[str]


def proxies(
    judged_by: JudgedBy,
    workload: Object,
    pod_sets: Iterable[PodSet],
    flavors: Callable[[str], Object | None],
) -> dict[str, PromisedPodSet]:
    """Return by pod set the proxy that each of its pods would be, and what it asks of a node.

    ConfigError if none can be made: the webhook would refuse such pods, too.
    """
    found = {}
    for each in pod_sets:
        specs = [objects.spec(flavors(name) or {}) for name in each.flavors]
        name = f"{objects.name(workload)}-{each.name}"
        proxy = _proxy(judged_by, objects.namespace(workload), name, each.template, specs)
        found[each.name] = PromisedPodSet(proxy, _shape(judged_by, proxy, each.counted))

    return found


def _proxy(
    judged_by: JudgedBy, namespace: str, name: str, template: Object, flavors: Iterable[Object]
) -> Object:
    """Make the proxy of a template with what Kueue adds for flavors.

    The template of a plain pod is a proxy already: what is added chooses its virtual node only.
    """
    annotations, spec = objects.annotations(template), dict(objects.spec(template))
    saved = annotations.get(keys.SOURCE_POD_MANIFEST)
    if saved is not None:
        annotations, own = saved_manifest.read(saved)
        spec = {k: v for k, v in spec.items() if k not in saved_manifest.FIELDS} | own

    selector: dict[str, str] = {}
    tolerations: list[Object] = []
    for flavor in flavors:
        selector |= flavor.get("nodeLabels") or {}
        tolerations += flavor.get("tolerations") or []

    if saved is None:
        spec = _with(pod_defaults.completed(spec), selector, tolerations)

    metadata = {
        "namespace": namespace,
        "name": name,
        "uid": f"{namespace}/{name}",
        "labels": objects.labels(template),
        "annotations": {k: v for k, v in annotations.items() if k not in _SAVED},
    }
    proxy = judged_by.as_proxy({"metadata": metadata, "spec": spec})
    if saved is None:
        return proxy

    return {**proxy, "spec": _with(objects.spec(proxy), selector, tolerations)}


def _with(spec: Object, selector: Mapping[str, str], tolerations: list[Object]) -> Object:
    return {
        **spec,
        "nodeSelector": {**(spec.get("nodeSelector") or {}), **selector},
        "tolerations": [*(spec.get("tolerations") or ()), *tolerations],
    }


def _shape(judged_by: JudgedBy, proxy: Object, counted: Resources) -> Shape:
    """Return what a delegate asks of a node; without its constraints if they cannot be read."""
    requests = resources.largest((resources.pod_requests(proxy), counted))
    return shapes.read(requests, judged_by.constraints(proxy)) or Shape(requests)


def beside(judged_by: JudgedBy, pods: Mapping[str, PromisedPodSet]) -> PromisedBeside:
    """Return what sums up the promises that count beside these pods."""
    spaces = {objects.namespace(each.pod) for each in pods.values()}
    quotas = judged_by.cache.quotas
    return PromisedBeside(spaces, lambda node, each, n: quotas.demand(each.pod, n, node))


def rooms(
    judged_by: JudgedBy, pods: Mapping[str, PromisedPodSet], others: PromisedBeside
) -> Iterator[TargetRoom]:
    """Yield what each target has for these pods, beside what others are promised."""
    cache, snapshot = judged_by.cache, judged_by.cache.snapshot()
    verdicts = {
        name: judged_by.framework.verdicts(each.pod, snapshot) for name, each in pods.items()
    }
    for node in snapshot:
        free, rows = cache.reported(node.name)
        there = {
            name: _pods_there(judged_by, node, rows, each.shape, *verdicts[name][node.name])
            for name, each in pods.items()
        }
        on_way, promised = cache.promised(node.name), others.at(node.name)
        listed = [requests for uid, requests in on_way.items() if uid not in others.awaited]
        yield TargetRoom(
            node.name,
            "/".join(filter(None, node.virtual.target)),
            there,
            rows,
            node.known_free() if free is None else free,
            # A target with pools that may grow is never too small.
            None if node.virtual.pools else node.virtual.allocatable,
            (*packing.by_shape(listed), *promised.pods),
            _quotas(cache, node.name, pods, promised.demand),
        )


def _pods_there(
    judged_by: JudgedBy,
    node: VirtualNodeInfo,
    rows: Rows | None,
    shape: Shape,
    fact: Status | None,
    guess: Status | None,
) -> PodsThere:
    shape = shape.only(shape.wanted.keys() - node.virtual.unlisted)
    if fact is not None:
        return PodsThere(shape, fact.message, fact.plugin in judged_by.lasting)

    is_chosen = rows is None or any(shape.matches(a.labels, rows.keys) for a in rows.alike)
    if rows is not None and rows.complete and rows.alike and not is_chosen:
        return PodsThere(shape, ", ".join(rows.refusals(shape)), is_final=not node.virtual.pools)

    if guess is not None and guess.plugin not in judged_by.counted:
        return PodsThere(shape, guess.message)

    return PodsThere(shape)


def _quotas(
    cache: Cache,
    node: str,
    pods: Mapping[str, PromisedPodSet],
    taken: Mapping[str, Nanos],
) -> Callable[[Wanted], str]:
    """Return what tells what quotas of a target lack for some of these pods, beside others."""

    def lack(wanted: Wanted) -> str:
        asked = [(pods[name].pod, count) for name, count in wanted.items()]
        return cache.quotas.lack(asked, node, taken)

    return lack
