"""Situations of nodes: what their Events say of volumes and networks, and what their taints say."""

from __future__ import annotations

from typing import Final

from tests.unit.cli.event_situations import VOLUMES, told
from tests.unit.cli.situation_cases import Case, nodes, nowhere, sent
from tests.unit.cli.situations import waiting
from vnode.insight.verdicts import PodState

FORBIDDEN: Final = 'pods "web-x" is forbidden: '
CLAIM: Final = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
GENERAL: Final = "the text names what refuses it"
TOLERATE: Final = "give the pod a toleration"
NETWORK: Final = "the network plugin works on node worker-1 of c2"


def aside(reason: str, message: str) -> Case:
    """Return the case of a pod that starts, of which a warning says nothing that matters."""
    return sent(
        "the containers start in target c2 on node worker-1",
        status=waiting("ContainerCreating"),
        state=PodState.STARTING,
        event=(reason, message),
        unsaid=(message,),
    )


def unmounted(message: str, cure: str, *unsaid: str) -> Case:
    said = f'MountVolume.SetUp failed for volume "data" : {message}'
    return told("FailedMount", said, cure, unsaid=(VOLUMES, *unsaid))


def tainted(taint: str) -> Case:
    """Return the case of nodes that are not ready, or go, as their taint says."""
    cure = f"nodes of c2 have taint {taint}"
    return nodes(f"node(s) had untolerated taint {{{taint}: }}", cure, unsaid=(TOLERATE,))


NODES: Final[dict[str, Case]] = {
    "name servers that are too many": aside(
        "DNSConfigForming", "Nameserver limits were exceeded, some nameservers have been omitted"
    ),
    "a pull secret that the image may do without": aside(
        "FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (regcred)"
    ),
    "a policy that only reports": aside(
        "PolicyViolation", "policy no-latest/check fail: an image has tag latest"
    ),
    "a CSI driver that the node lacks": unmounted(
        "driver name ebs.csi.example.com not found in the list of registered CSI drivers",
        "install CSI driver ebs.csi.example.com in c2",
    ),
    "a key that a ConfigMap's volume wants": unmounted(
        "references non-existent config key: app.yaml", "add key app.yaml to the ConfigMap"
    ),
    "a path of the host that is another thing": unmounted(
        "hostPath type check failed: /mnt/data is not a directory, it's a file",
        "node worker-1 of c2 does not have that path",
    ),
    "a kubelet that has not heard of a ConfigMap": unmounted(
        'object "default"/"kube-root-ca.crt" not registered', "tries again by itself"
    ),
    "a node without a helper for NFS": unmounted(
        "mount failed: exit status 32: bad option; you might need a /sbin/mount.<type> helper "
        "program.",
        "lacks what mounts such a volume, such as nfs-common",
    ),
    "a node without a network plugin": told(
        "NetworkNotReady",
        "network is not ready: container runtime network not ready: cni plugin not initialized",
        NETWORK,
    ),
    "a sandbox image that is not there": told(
        "FailedCreatePodSandBox",
        'Failed to create pod sandbox: failed to get sandbox image "registry.example/pause:3": '
        "dial tcp: i/o timeout",
        "the nodes of c2 get the sandbox image",
        unsaid=(NETWORK,),
    ),
    "a runtime that makes no sandbox": told(
        "FailedCreatePodSandBox",
        "Failed to create pod sandbox: runc create failed: cgroup: no space left on device",
        "see what the container runtime of node worker-1 of c2 lacks",
        unsaid=(NETWORK,),
    ),
    "nodes whose network agent is not ready": tainted("node.cilium.io/agent-not-ready"),
    "nodes whose storage driver is not ready": tainted("ebs.csi.aws.com/agent-not-ready"),
    "nodes that an autoscaler takes away": tainted("ToBeDeletedByClusterAutoscaler"),
    "nodes that Karpenter takes away": tainted("karpenter.sh/disrupted"),
    "nodes without a CSI driver": nodes(
        "ebs.csi.example.com CSI driver is not installed on the node",
        "install CSI driver ebs.csi.example.com on the nodes of c2",
        volumes=CLAIM,
    ),
    "a claim whose volume is gone": nowhere(
        '0/3 nodes are available: persistentvolumeclaim "data" bound to non-existent '
        'persistentvolume "pv-a"',
        "the volume of PersistentVolumeClaim data is gone in c2",
        volumes=CLAIM,
        unsaid=("is not bound",),
    ),
    "devices that are on another node": nodes(
        "resourceclaim not available on the node", "on other nodes of c2 than the pod may use"
    ),
    "an etcd that is full": nowhere(
        "etcdserver: mvcc: database space exceeded", "the etcd of c2 is full"
    ),
    "a pod that is too large for the API server": nowhere(
        "Request entity too large: limit is 3145728", "make the pod smaller"
    ),
    "node selectors of the namespace": nowhere(
        f"{FORBIDDEN}pod node label selector conflicts with its namespace node label selector",
        "scheduler.alpha.kubernetes.io/node-selector of the namespace in c2",
        unsaid=(GENERAL,),
    ),
    "tolerations that the namespace does not allow": nowhere(
        f"{FORBIDDEN}pod tolerations (possibly merged with namespace default tolerations) conflict "
        "with its namespace whitelist",
        "tolerationsWhitelist of the namespace in c2",
        unsaid=(GENERAL, TOLERATE),
    ),
}
