"""Kueue and JobSet, as their own modules have them.

The first use on a machine builds the programs, which takes twenty minutes.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from hack.fleetlib.tools import catalogue
from tests.frameworks.controllers import WebhookController
from vnode.api.objects import Object

NAMESPACE: Final = "kueue-system"
_FRAMEWORKS: Final = {
    "job": "batch/job",
    "pod": "pod",
    "deployment": "deployment",
    "jobset": "jobset.x-k8s.io/jobset",
}
"""Those of Kueue's integrations that are on, by the kind as paths of webhooks have it."""
_OWN_KINDS: Final = ("clusterqueue", "cohort", "resourceflavor", "workload")
_SYSTEM: Final = ("kube-system", NAMESPACE)


def _kueue_selectors(path: str) -> Object | None:
    """Return the namespaces that Kueue's own installation leaves alone; None for other kinds."""
    kind = path.rpartition("-")[2]
    if kind in _OWN_KINDS:
        return {}

    if kind not in _FRAMEWORKS:
        return None

    elsewhere = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [*_SYSTEM]}
    return {"namespaceSelector": {"matchExpressions": [elsewhere]}}


def _with_own_etc(run: list[str], folder: Path) -> list[str]:
    """Return a command in whose /etc there is the certificate of Kueue's metrics.

    It looks there whatever its configuration says. On the machine nothing is left of it.
    """
    layers = f"lowerdir={folder / 'etc'}:/etc"
    view = shlex.join(["mount", "-t", "overlay", "overlay", "-o", layers, "/etc"])
    return ["unshare", "--mount", "sh", "-c", f"{view} && exec {shlex.join(run)}"]


CREDENTIAL_FILE: Final = "credential.json"
"""Is in Kueue's own folder, for clusters whose ClusterProfile has the access provider `file`."""

_CREDENTIAL_PLUGIN: Final = {
    "name": "file",
    "execConfig": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", f'cat "$TMPDIR/{CREDENTIAL_FILE}"'],
        "interactiveMode": "Never",
    },
}

_CRDS: Final = "config/components/crd/bases/*.yaml"
_WEBHOOKS: Final = "config/components/webhook/manifests.yaml"

KUEUE: Final = WebhookController(
    program="kueue",
    module=catalogue.KUEUE_MODULE,
    crds=_CRDS,
    webhooks=_WEBHOOKS,
    configuration={
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "featureGates": {
            # It is an API server of its own, which pods of the cluster would reach by a Service.
            "VisibilityOnDemand": False,
            "MultiKueueClusterProfile": True,
        },
        "multiKueue": {"clusterProfile": {"accessProviders": [_CREDENTIAL_PLUGIN]}},
        "integrations": {"frameworks": [*_FRAMEWORKS.values()]},
    },
    webhook_port=6301,
    health_port=6302,
    selectors=_kueue_selectors,
    argv=_with_own_etc,
    certificates=("webhooks", "etc/kueue/metrics/certs"),
)


def _jobset_selectors(path: str) -> Object:
    """Return the pods that JobSet's own installation looks at."""
    if not path.endswith("-pod"):
        return {}

    labelled = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
    return {"objectSelector": {"matchExpressions": [labelled]}}


JOBSET: Final = WebhookController(
    program="jobset",
    module=catalogue.JOBSET_MODULE,
    crds=_CRDS,
    webhooks=_WEBHOOKS,
    configuration={"apiVersion": "config.jobset.x-k8s.io/v1alpha1"},
    webhook_port=6303,
    health_port=6304,
    selectors=_jobset_selectors,
)
