"""Situations of pods that are no proxies, or of which an agent says nothing yet."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.cli.situation_cases import AGAIN, Case, between
from tests.unit.cli.situations import Situation
from tests.unit.cli.unready_situations import NAMESPACED, UNAUTHORIZED
from vnode.api import keys, kinds
from vnode.api.objects import Object
from vnode.insight.verdicts import PodState

AGAIN_CREATED: Final = "create the pod again"


def ordinary(here: Situation, owner: Object | None = None, **metadata: Any) -> None:
    owners = [{**owner, "uid": "u", "controller": True}] if owner else []
    whole = {"name": "web", "namespace": "default", "ownerReferences": owners, **metadata}
    pod = {"metadata": whole, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    here.source.add(kinds.PODS, pod)


def delegate(here: Situation) -> None:
    chaperon = {"apiVersion": kinds.POD_CHAPERONS.api_version, "kind": "PodChaperon", "name": "web"}
    ordinary(
        here,
        chaperon,
        labels={keys.PARENT_CLUSTER_NAME: "berlin"},
        annotations={keys.PARENT_NAME: "web-7", keys.PARENT_NAMESPACE: "default"},
    )


def static(here: Situation) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "name": "n"}
    ordinary(here, node, annotations={keys.ELECT: ""})


def by_namespace(here: Situation, **labels: str) -> None:
    """Have a pod in a namespace that elects its pods, and has these labels."""
    metadata = {"name": "default", "annotations": {keys.ELECT: ""}, "labels": labels}
    here.source.change(
        kinds.NAMESPACES, "default", "", lambda obj: obj["metadata"].update(metadata)
    )
    ordinary(here)


def ended_there(here: Situation) -> None:
    here.sent({"phase": "Succeeded"})


def deleted_target(here: Situation) -> None:
    marks = {"deletionTimestamp": here.ago(60), "finalizers": ["vnode.dev/target"]}
    here.source.change(kinds.TARGETS, "c2", "default", lambda obj: obj["metadata"].update(marks))
    here.pod("0/1 targets: c2: the target is not connected")


UNELECTED: Final[dict[str, Case]] = {
    "a delegate in its own cluster": Case(
        delegate,
        PodState.NOT_ELECTED,
        "it is the delegate pod of pod/default/web-7 in cluster berlin",
        ("in that cluster: vnode explain web-7 -n default",),
        ("annotate",),
    ),
    "a static pod": Case(
        static, PodState.NOT_ELECTED, "it is a static pod of its node", (), ("webhook",)
    ),
    "a namespace that elects, without the label": Case(
        by_namespace,
        PodState.NOT_ELECTED,
        "its namespace elects it, but does not have the label multicluster-scheduler=enabled",
        ("kubectl label namespace default multicluster-scheduler=enabled", AGAIN_CREATED),
    ),
    "a namespace that elects since the pod is there": Case(
        lambda here: by_namespace(here, **dict([keys.WEBHOOK_NAMESPACE_LABEL])),
        PodState.NOT_ELECTED,
        "its namespace elects it, but it was not elected when it was created",
        ("vnode doctor", AGAIN_CREATED),
    ),
    "a pod that has ended, of which only the target knows": Case(
        ended_there, PodState.FINISHED, "the pod has ended in target c2: Succeeded", ()
    ),
    "a pod of which no agent has said anything": Case(
        lambda here: here.pod(),
        PodState.WAITING,
        "the pod is in the queue of the agent",
        ("vnode doctor says what keeps the agent",),
    ),
    "a Target that is being deleted": Case(
        deleted_target,
        PodState.UNSCHEDULABLE,
        "c2: its Target is being deleted",
        ("once it is gone, make it again", AGAIN),
    ),
    "a full target before one whose token has expired": between(
        {"c2": UNAUTHORIZED, "c3": "0/3 nodes are available: 3 Insufficient cpu"},
        "c3: 0/3 nodes are available: 3 Insufficient cpu",
        "add nodes in the target that are large enough",
        NAMESPACED,
    ),
}
