"""Situations of pods of which only Events of their nodes tell why they do not start."""

from __future__ import annotations

from typing import Final

from tests.unit.cli.situation_cases import Case, sent

VOLUMES: Final = "pvc,volumeattachments"


def told(reason: str, message: str, *cures: str, unsaid: tuple[str, ...] = ()) -> Case:
    """Return the case of a pod of which an Event tells why it does not start."""
    more = "all of its Events: in c2, kubectl describe pod web-"
    return sent(f"target c2 says: {message}", *cures, more, event=(reason, message), unsaid=unsaid)


TOLD: Final[dict[str, Case]] = {
    "a ConfigMap that its volume lacks": told(
        "FailedMount",
        'MountVolume.SetUp failed for volume "cfg" : configmap "app" not found',
        "kubectl get configmap app -n default",
        unsaid=(VOLUMES,),
    ),
    "a volume that does not answer": told(
        "FailedMount",
        'MountVolume.SetUp failed for volume "nfs" : mount.nfs: Connection timed out',
        VOLUMES,
        unsaid=("registry",),
    ),
    "a RuntimeClass that the node does not have": told(
        "FailedCreatePodSandBox",
        'Failed to create pod sandbox: no runtime for "runsc" is configured',
        "set up the handler of the pod's RuntimeClass in the container runtime of node worker-1",
        unsaid=("network plugin",),
    ),
    "a node without addresses": told(
        "FailedCreatePodSandBox",
        "Failed to create pod sandbox: plugin failed (add): failed to assign an IP address",
        "node worker-1 of c2 has no addresses left for pods",
    ),
    "a driver of devices that does not work": told(
        "FailedPrepareDynamicResources",
        "Failed to prepare dynamic resources: NodePrepareResources failed",
        "see that the driver of the pod's devices works on node worker-1 of c2",
    ),
    "a token that is not given": told(
        "FailedMount",
        'MountVolume.SetUp failed for volume "kube-api-access-x" : failed to fetch token: '
        'serviceaccounts "builder" is forbidden',
        "kubectl get serviceaccounts -n default",
        unsaid=(VOLUMES,),
    ),
}
