"""What Admiralty 0.17 leaves in two clusters, made by hand from its contract.

c1 is the source of one running pod, in c2. Admiralty itself runs nowhere: its Deployment is there,
as an object of a Helm release, and so are its CRDs, whose schemas are as loose as Admiralty's.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Final

import yaml

from tests import kit
from tests.chart.helm import helm
from vnode.api import kinds, objects
from vnode.api.objects import Object, Objects
from vnode.cli import kubeconfigs, manifests
from vnode.kube.client import Client

PREFIX: Final = "multicluster.admiralty.io/"
NODE: Final = "admiralty-default-c2"
FINALIZER: Final = PREFIX + "default-c2"
NAMESPACE: Final = "admiralty"


def chart(folder: Path) -> Path:
    """Write a chart with the parts of Admiralty's that matter here; return its folder.

    CRDs are among its templates, without a resource policy that keeps them.
    """
    place = folder / "multicluster-scheduler"
    (place / "templates").mkdir(parents=True)
    (place / "Chart.yaml").write_text(
        "apiVersion: v2\nname: multicluster-scheduler\nversion: 0.17.0"
    )
    text = yaml.safe_dump_all([*_crds(), *roles(), _webhook(), _deployment()])
    (place / "templates" / "all.yaml").write_text(text)
    return place


def install(kubeconfig: Path, place: Path) -> None:
    words = ("install", "admiralty", place, "--namespace", NAMESPACE, "--create-namespace")
    helm(*words, "--kubeconfig", kubeconfig)


def _crds() -> Objects:
    found = []
    for ours in manifests.crds():
        crd = copy.deepcopy(ours)
        crd["metadata"] = {"name": objects.name(crd)}
        [version] = crd["spec"]["versions"]
        loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version["schema"] = {"openAPIV3Schema": loose}
        version.pop("additionalPrinterColumns", None)
        found.append(crd)

    return found


def roles() -> Objects:
    names = ("admiralty-source", "admiralty-cluster-summary-viewer")
    return [role for role in manifests.rbac(NAMESPACE) if objects.name(role) in names]


def _webhook() -> Object:
    hook = manifests.webhook(NAMESPACE)
    hook["metadata"] = {"name": "admiralty"}
    hook["webhooks"][0]["name"] = "admiralty.multicluster.admiralty.io"
    hook["webhooks"][0]["clientConfig"]["service"]["name"] = "admiralty"
    return hook


def _deployment() -> Object:
    container = {"name": "c", "image": "admiralty-agent:0.17.0"}
    labels = {"component": "controller-manager"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "admiralty-controller-manager", "namespace": NAMESPACE},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


async def relate(source: Client, target: Client, kubeconfig: Path) -> None:
    """Create what connects a source and a target of Admiralty's.

    The source gets a Target, a Secret and the virtual node; the target gets a Source, a service
    account, its bindings and a ClusterSummary.
    """
    await kit.until_served(source, kinds.TARGETS)
    for kind in (kinds.SOURCES, kinds.CLUSTER_SUMMARIES, kinds.POD_CHAPERONS):
        await kit.until_served(target, kind)

    account = {"metadata": {"name": "c1"}}
    await target.create(kinds.SERVICE_ACCOUNTS, account, "default")
    await target.create(
        kinds.SOURCES, {"metadata": {"name": "c1"}, "spec": {"serviceAccountName": "c1"}}, "default"
    )
    await _bind(target)
    review = await target.create(
        kinds.SERVICE_ACCOUNTS, {"spec": {}}, "default", name="c1", subresource="token"
    )
    reach, _name = kubeconfigs.read(kubeconfig)
    config = kubeconfigs.build(reach, objects.status(review)["token"], "default").decode()
    secret = {"metadata": {"name": "c2"}, "stringData": {"config": config}}
    await source.create(kinds.SECRETS, secret, "default")
    wanted = {"metadata": {"name": "c2"}, "spec": {"kubeconfigSecret": {"name": "c2"}}}
    await source.create(kinds.TARGETS, wanted, "default")
    summary = {"metadata": {"name": "singleton"}, **_size()}
    await target.create(kinds.CLUSTER_SUMMARIES, summary)
    await _register(source)


async def _bind(target: Client) -> None:
    subjects = [{"kind": "ServiceAccount", "name": "c1", "namespace": "default"}]
    group = "rbac.authorization.k8s.io"

    def binding(name: str, role: str) -> Object:
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": role}
        return {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}

    source = binding("admiralty-source-c1", "admiralty-source")
    await target.create(kinds.ROLE_BINDINGS, source, "default")
    viewer = "admiralty-cluster-summary-viewer"
    name = f"admiralty-source-default-c1{viewer.removeprefix('admiralty')}"
    await target.create(kinds.CLUSTER_ROLE_BINDINGS, binding(name, viewer))


async def _register(source: Client) -> None:
    node = {
        "metadata": {
            "name": NODE,
            "labels": {
                "type": "virtual-kubelet",
                "virtual-kubelet.io/provider": "admiralty",
                "kubernetes.io/role": "cluster",
                PREFIX + "target-namespace": "default",
                PREFIX + "target-name": "c2",
            },
            "annotations": {"virtual-kubelet.io/last-applied-node-status": "{}"},
        },
        "spec": {
            "taints": [
                {
                    "key": "virtual-kubelet.io/provider",
                    "value": "admiralty",
                    "effect": "NoSchedule",
                }
            ]
        },
    }
    await source.create(kinds.NODES, node)
    ready = {"type": "Ready", "status": "True"}
    body = {"status": {"conditions": [ready], **_size()}}
    await source.patch(kinds.NODES, NODE, body, subresource="status")


def _size() -> Object:
    size = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {"capacity": size, "allocatable": size}


async def proxy(source: Client, name: str) -> Object:
    """Return a proxy pod as Admiralty's webhook makes it, bound as its scheduler binds it."""
    manifest = {**kit.pod(name), "status": {}}
    manifest["metadata"] = {**manifest["metadata"], "creationTimestamp": None}
    spec = {
        **manifest["spec"],
        "schedulerName": "admiralty-proxy",
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"virtual-kubelet.io/provider": "admiralty"},
        "tolerations": [{"key": "virtual-kubelet.io/provider", "value": "admiralty"}],
    }
    body = {
        "metadata": {
            "name": name,
            "annotations": {
                PREFIX + "elect": "",
                PREFIX + "sourcepod-manifest": yaml.safe_dump(manifest),
            },
            "labels": {"app": name, PREFIX + "has-finalizer": "true"},
            "finalizers": [FINALIZER],
        },
        "spec": spec,
    }
    created = await source.create(kinds.PODS, body, "default")
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": NODE}}
    await source.create(kinds.PODS, binding, "default", name=name, subresource="binding")
    return created


async def chaperon(target: Client, proxy: Object) -> Object:
    """Create a proxy pod's chaperon, decided, and its delegate, which a node of the target runs."""
    name = objects.name(proxy)
    spec = {**kit.pod(name)["spec"], "schedulerName": "admiralty-candidate"}
    labels = {
        PREFIX + "app": name,
        PREFIX + "parent-uid": objects.uid(proxy),
        PREFIX + "parent-cluster-name": "c1",
    }
    annotations = {
        PREFIX + "parent-namespace": "default",
        PREFIX + "parent-name": name,
        PREFIX + "is-reserved": "true",
        PREFIX + "is-allowed": "true",
    }
    metadata: dict[str, Any] = {
        "generateName": f"{name}-",
        "labels": labels,
        "annotations": annotations,
    }
    made = await target.create(kinds.POD_CHAPERONS, {"metadata": metadata, "spec": spec}, "default")
    owner = {
        "apiVersion": "multicluster.admiralty.io/v1alpha1",
        "kind": "PodChaperon",
        "name": objects.name(made),
        "uid": objects.uid(made),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "name": objects.name(made),
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner],
    }
    await target.create(kinds.PODS, {"metadata": metadata, "spec": spec}, "default")
    binding = {
        "metadata": {"name": objects.name(made)},
        "target": {"kind": "Node", "name": "c2-node-0"},
    }
    await target.create(
        kinds.PODS, binding, "default", name=objects.name(made), subresource="binding"
    )
    return made
