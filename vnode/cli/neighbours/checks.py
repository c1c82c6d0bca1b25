"""Says what of a source's own may be disturbed by virtual nodes, and how to prevent it. No I/O.

Most is prevented by the nodes' labels, taint and the webhook (docs/coexistence.md); here is what
these do not reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from vnode.api import enumeration, keys, node_labels, objects, real_nodes
from vnode.api.objects import Object
from vnode.cli import installed
from vnode.cli.neighbours.own_objects import OwnObjects
from vnode.nodes.coexistence import ROLE
from vnode.webhook import own_pods

PAGE: Final = "docs/coexistence.md"
_NAMED: Final = 3  # objects in one line
_ROLES: Final = (ROLE, "node-role.kubernetes.io/control-plane")
_TOPOLOGY: Final = (
    "service.kubernetes.io/topology-mode",
    "service.kubernetes.io/topology-aware-hints",
)
_EXCLUDE: Final = f"{keys.PROVIDER_LABEL}!={keys.PROVIDER}"
_OWN_PODS: Final = "own-pods.vnode.dev"
_PROPORTIONAL: Final = ("cluster-proportional", "-horizontal-autoscaler", "cpvpa", "cpha")
_LIMITS: Final = ("--max-nodes-total", "--cores-total", "--memory-total", "--max-cores-total")


class Disturbance(NamedTuple):
    """Something that a virtual node does to the source's own: in two words, in full, the cure."""

    what: str
    text: str
    cure: str


def disturbances(own: OwnObjects) -> Iterator[Disturbance]:
    """Yield what virtual nodes disturb, or will once there are any."""
    yield from _spread(own)
    yield from _routing(own)
    yield from _tolerant(own)
    yield from _stranded(own)
    yield from _proportional(own)
    yield from _autoscaler(own)


def tolerant_daemons(own: OwnObjects) -> str:
    """Return a sentence on DaemonSets that get a pod for each virtual node; "" without any."""
    found = [
        f"daemonset/{objects.key(obj)}"
        for obj in own.daemon_sets
        if real_nodes.tolerates_everything(_spec(obj)) and not _keeps_off(_spec(obj))
    ]
    if not found:
        return ""

    return (
        f"{_listed(found)}: Kubernetes makes a pod for each virtual node, which runs nothing and "
        f"is reported as ready; to have none, exclude {keys.PROVIDER_LABEL} by node affinity "
        f"({PAGE})"
    )


def _spread(own: OwnObjects) -> Iterator[Disturbance]:
    """Find pods that are spread over a label by which a virtual node is an empty place."""
    places = {(key, value) for node in own.machines for key, value in objects.labels(node).items()}
    empty: dict[str, str] = {}
    for node in own.virtual_nodes:
        for key, value in objects.labels(node).items():
            if (key, value) not in places:
                empty.setdefault(key, objects.name(node))

    for key, name in sorted(empty.items()):
        found = [
            f"{kind}/{objects.key(obj)}"
            for kind, obj in own.workloads
            if key in node_labels.spread_keys({"spec": _spec(obj)})
        ]
        if found:
            yield Disturbance(
                "spread of own pods",
                f"pods of {_listed(found)} are spread over {key} (DoNotSchedule), and node {name} "
                "is an empty place of it: their rollouts may hang",
                f"take {key} out of the Target's annotation {keys.SHOWN_LABELS}, or set "
                "nodeTaintsPolicy: Honor in the constraint",
            )


def _routing(own: OwnObjects) -> Iterator[Disturbance]:
    """Find Services whose topology-aware routing ends where virtual nodes have no role."""
    asking = [
        f"service/{objects.key(obj)}"
        for obj in own.services
        if any(objects.annotations(obj).get(key, "").lower() == "auto" for key in _TOPOLOGY)
    ]
    without = [
        node for node in own.virtual_nodes if not any(key in objects.labels(node) for key in _ROLES)
    ]
    taken = any(ROLE in objects.labels(node) for node in own.machines)
    if asking and (without or (taken and not own.virtual_nodes)):
        yield Disturbance(
            "topology routing",
            f"{_listed(asking)} asks for topology-aware routing, which Kubernetes turns off for "
            f"all Services while a node without zone is ready; virtual nodes do not have {ROLE}, "
            "by which it would leave them out, because machines of this cluster have it",
            "set spec.trafficDistribution in place of the annotation, or give the virtual nodes a "
            f"role ({PAGE})",
        )


def _tolerant(own: OwnObjects) -> Iterator[Disturbance]:
    """Find pods that tolerate everything, where no webhook keeps them on machines."""
    hooks = (own.webhook or {}).get("webhooks") or ()
    is_there = any(hook.get("name") == _OWN_PODS for hook in hooks)
    named = installed.read(own.webhook).named if is_there else ()
    if is_there and not named:
        return

    found = [
        f"{kind}/{objects.key(obj)}"
        for kind, obj in own.workloads
        if objects.namespace(obj) not in named
        and own_pods.patch({"spec": _spec(obj)}, may_go=False)
    ]
    if found:
        yield Disturbance(
            "tolerant pods",
            f"pods of {_listed(found)} tolerate every taint, and no webhook keeps them off virtual "
            "nodes, where they would not run",
            f"exclude {keys.PROVIDER_LABEL} by node affinity ({PAGE}): the agent is held to "
            "other namespaces, and its webhook with it"
            if named
            else "run vnode install again, with the version that the agent has (helm upgrade)",
        )


def _stranded(own: OwnObjects) -> Iterator[Disturbance]:
    """Find pods on virtual nodes that came because they tolerate everything."""
    found = [
        f"pod/{objects.key(pod)}"
        for pod in own.stranded
        if not objects.is_finished(pod)
        and own_pods.patch({**pod, "spec": _unbound(pod)}, may_go=False)
    ]
    if found:
        yield Disturbance(
            "stranded pods",
            f"{_listed(found)} tolerates every taint, and was bound to a virtual node",
            "kubectl delete it: its successor is kept on machines",
        )


def _proportional(own: OwnObjects) -> Iterator[Disturbance]:
    for name, arguments in _running(own, *_PROPORTIONAL):
        if not any("nodelabels" in argument for argument in arguments):
            yield Disturbance(
                "proportional scaling",
                f"{name} scales with the nodes and cores of the cluster, and counts virtual nodes, "
                "each with the cores of a whole target",
                f"add --nodelabels={_EXCLUDE} to its arguments, and see its maximum",
            )


def _autoscaler(own: OwnObjects) -> Iterator[Disturbance]:
    for name, arguments in _running(own, "cluster-autoscaler"):
        limits = [each for each in arguments if each.startswith(_LIMITS)]
        if limits:
            yield Disturbance(
                "cluster autoscaler",
                f"{name} has {' '.join(limits)}, for which it counts virtual nodes, each with the "
                "resources of a whole target: it may add no machine any more",
                "raise the limits by what virtual nodes show, or limit its node groups instead",
            )


def _running(own: OwnObjects, *images: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the Deployments that run such an image, with the arguments of its container."""
    for obj in own.deployments:
        for container in _spec(obj).get("containers") or ():
            image = str(container.get("image") or "").rpartition("/")[2]
            if any(name in image for name in images):
                words = [*(container.get("command") or ()), *(container.get("args") or ())]
                yield f"deployment/{objects.key(obj)}", [str(word) for word in words]


def _spec(workload: Object) -> Object:
    return objects.spec(objects.spec(workload).get("template") or {})


def _unbound(pod: Object) -> Object:
    return {key: value for key, value in objects.spec(pod).items() if key != "nodeName"}


def _keeps_off(spec: Object) -> bool:
    """Tell whether a DaemonSet's node affinity leaves virtual nodes out."""
    return not own_pods.patch({"spec": spec}, may_go=False)


def _listed(names: Iterable[str]) -> str:
    return enumeration.some(sorted(names), _NAMED)


def advice(own: OwnObjects) -> Iterator[str]:
    """Yield what `vnode connect` says of it, a line for each."""
    for found in disturbances(own):
        yield f"Mind: {found.text}. Cure: {found.cure}."

    if daemons := tolerant_daemons(own):
        yield f"Note: {daemons}."
