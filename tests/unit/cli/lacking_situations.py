"""Situations in which a target has no fit nodes, or lacks an object that the pod needs."""

from __future__ import annotations

from typing import Final

from tests.unit.cli.situation_cases import AGAIN, Case, nodes, nowhere
from tests.unit.cli.situations import Situation
from vnode.api import keys, kinds
from vnode.insight.verdicts import PodState

FORBIDDEN: Final = 'pods "web" is forbidden: '
CLAIM: Final = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
GENERAL: Final = ("the text names what refuses it", "create the class")


def failing_scheduler(here: Situation) -> None:
    here.pod()
    here.chaperon({})
    message = 'running "VolumeBinding" filter plugin: failed to find storage class "fast"'
    entry = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    here.target.change(
        kinds.POD_CHAPERONS,
        here.name_there,
        "default",
        lambda obj: obj.update(status={"conditions": [{**entry, "message": message}]}),
    )


LACKING: Final[dict[str, Case]] = {
    "nodes that are not ready": nodes(
        "node(s) had untolerated taint {node.kubernetes.io/not-ready: }",
        "nodes of c2 have taint node.kubernetes.io/not-ready",
        unsaid=("give the pod a toleration",),
    ),
    "nodes whose disks are full": nodes(
        "node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }",
        "there, kubectl describe nodes says more",
        unsaid=("give the pod a toleration",),
    ),
    "nodes of others, and some that are not ready": nowhere(
        "0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: "
        "}, 2 node(s) had untolerated taint {dedicated: gpu}",
        "nodes of c2 have taint node.kubernetes.io/unreachable",
        "give the pod a toleration for the taints of the nodes of c2",
    ),
    "taints that nobody names": nodes(
        "node(s) had untolerated taint(s)",
        "there, kubectl describe nodes names them, and whether the nodes are ready",
    ),
    "a target without nodes": nowhere(
        "no nodes available to schedule pods", "add nodes in c2: it has none"
    ),
    "a StorageClass that is missing": nodes(
        "pod has unbound immediate PersistentVolumeClaims",
        "there, kubectl describe pvc -n default data tells, such as a StorageClass that is missing",
        volumes=CLAIM,
    ),
    "a StorageClass without which the scheduler fails": Case(
        failing_scheduler,
        PodState.UNSCHEDULABLE,
        'c2: SchedulerError: running "VolumeBinding" filter plugin: failed to find storage class',
        ("create StorageClass fast in c2", AGAIN),
        ("waits for the answer", "queue"),
    ),
    "no PriorityClass, as the API server says it": nowhere(
        f"{FORBIDDEN}no PriorityClass with name urgent was found: create it in the target",
        "create PriorityClass urgent in c2",
        unsaid=GENERAL,
    ),
    "no RuntimeClass, as the API server says it": nowhere(
        f'{FORBIDDEN}pod rejected: RuntimeClass "gvisor" not found: create it in the target',
        "create RuntimeClass gvisor in c2",
        unsaid=GENERAL,
    ),
    "a PriorityClass that preempts where the pod must not": nowhere(
        'PriorityClass "urgent" preempts in the target, and the pod must not: map its class to one '
        "with preemptionPolicy Never",
        f"map the pod's PriorityClass to one of c2 with preemptionPolicy Never, by annotation "
        f"{keys.PRIORITY_CLASSES}",
        unsaid=GENERAL,
    ),
    "no DeviceClass": nodes(
        "device class gpu.example.com does not exist", "create DeviceClass gpu.example.com in c2"
    ),
    "a namespace that is being deleted there": nowhere(
        f"{FORBIDDEN}unable to create new content in namespace default because it is being "
        "terminated",
        "nothing can be created in namespace default of c2 until it is gone",
        unsaid=GENERAL,
    ),
    "a claim that is being deleted": nodes(
        'persistentvolumeclaim "data" is being deleted',
        "goes once no pod of namespace default of c2 uses it",
        volumes=CLAIM,
        unsaid=("create PersistentVolumeClaim",),
    ),
    "a field that the target does not know": nowhere(
        "the target's API server would drop spec.hostUsers: its version of Kubernetes lacks that, "
        "or has it disabled; enable it there, or keep the pod to other targets",
        "leave spec.hostUsers out of the pod",
    ),
    "a pod of that name": nowhere("another pod is named web-x", "delete pod web-x in c2"),
    "a webhook whose certificate is not trusted": nowhere(
        'Internal error occurred: failed calling webhook "inject.mesh": failed to call webhook: '
        'Post "https://mesh.svc:443": tls: failed to verify certificate: x509: certificate signed '
        "by unknown authority",
        "webhook inject.mesh of c2 shows a certificate that its caBundle does not vouch for",
        unsaid=("registry", "does not answer"),
    ),
    "a policy of the target": nowhere(
        f"{FORBIDDEN}ValidatingAdmissionPolicy 'no-latest' with binding 'no-latest' denied "
        "request: image must not be latest",
        "the text names what refuses it: change the pod, or that webhook, policy or limit",
    ),
    "a quota that wants limits": nowhere(
        f"{FORBIDDEN}failed quota: team: must specify limits.cpu for: main",
        "set them in the pod, or make a LimitRange",
        unsaid=GENERAL,
    ),
}
