"""The table of what names things of one cluster."""

from __future__ import annotations

import pytest

from hack.fleetlib import followdocs
from vnode.api import cluster_bound, cluster_things, storage
from vnode.api.cluster_things import TravelFate
from vnode.api.objects import Object


def test_the_page_shows_the_table() -> None:
    page = followdocs.PAGE.read_text()
    assert followdocs.updated(page) == page, "run hack/reference"
    assert "| Service | `loadBalancerIP` | stays" in page


@pytest.mark.parametrize(
    "annotation",
    [
        "metallb.universe.tf/address-pool",
        "metallb.io/loadBalancerIPs",
        "service.beta.kubernetes.io/azure-load-balancer-resource-group",
        "service.beta.kubernetes.io/aws-load-balancer-ssl-cert",
        "external-dns.alpha.kubernetes.io/hostname",
        "alb.ingress.kubernetes.io/certificate-arn",
        "cloud.google.com/backend-config",
        "cert-manager.io/cluster-issuer",
        cluster_things.LAST_APPLIED,
    ],
)
def test_what_names_things_of_the_source_stays(annotation: str) -> None:
    assert not cluster_bound.travels(annotation)


@pytest.mark.parametrize(
    "annotation",
    [
        "service.kubernetes.io/topology-mode",
        "nginx.ingress.kubernetes.io/rewrite-target",
        "k8gb.io/strategy",
        "io.cilium/global-service",
        "service.beta.kubernetes.io/load-balancer-source-ranges",
        "service.beta.kubernetes.io/azure-load-balancer-internal",
        "example.com/metallb.io/address-pool",
    ],
)
def test_what_means_the_same_everywhere_travels(annotation: str) -> None:
    assert cluster_bound.travels(annotation)


def test_a_target_lets_travel_what_is_fought_over_and_no_notes_about_the_original() -> None:
    def anyway(_name: str) -> bool:
        return True

    assert cluster_bound.travels("external-dns.alpha.kubernetes.io/hostname", anyway)
    assert cluster_bound.staying_fields("Service", anyway) == {
        *("clusterIP", "clusterIPs", "ipFamilies", "healthCheckNodePort")
    }
    assert not cluster_bound.travels("meta.helm.sh/release-name", anyway)
    assert not cluster_bound.may_travel("meta.helm.sh/")
    assert cluster_bound.may_travel("service.beta.kubernetes.io/aws-")
    assert cluster_bound.may_travel("spec.externalIPs")
    assert not cluster_bound.may_travel("spec.clusterIP")


def test_what_stays_has_a_reason_and_no_pattern_is_in_two_rows() -> None:
    patterns = [each for row in cluster_things.TABLE for each in row.annotations]
    assert len(patterns) == len(set(patterns))
    assert all(row.why for row in cluster_things.TABLE)
    assert all(row.fate is TravelFate.STAYS for row in cluster_things.TABLE if row.may_travel)


def test_ephemeral_volumes_have_classes_of_the_target() -> None:
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "volumeName": "pv-7",
        "selector": {"matchLabels": {"disk": "a"}},
        "volumeAttributesClassName": "gold",
        "dataSource": {"kind": "VolumeSnapshot", "name": "seed"},
    }
    metadata = {"labels": {"a": "b"}, "annotations": {"volume.kubernetes.io/selected-node": "n"}}
    template = {"metadata": metadata, "spec": claim}
    other = {"name": "config", "configMap": {"name": "c"}}
    volumes = [{"name": "s", "ephemeral": {"volumeClaimTemplate": template}}, other]
    spec: Object = {"volumes": volumes}
    storage.translate(spec, {"fast": "premium"})
    made = spec["volumes"][0]["ephemeral"]["volumeClaimTemplate"]
    assert made["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "premium",
        "dataSource": {"kind": "VolumeSnapshot", "name": "seed"},
    }
    assert made["metadata"] == {"labels": {"a": "b"}, "annotations": {}}
    assert spec["volumes"][1] is other
    assert claim["storageClassName"] == "fast"  # the pod in the store is as it was


@pytest.mark.parametrize(
    ("own", "classes", "there"),
    [("fast", {}, "fast"), ("fast", {"fast": ""}, None), (None, {"": "standard"}, "standard")],
)
def test_the_default_class_of_either_cluster_is_mapped(
    own: str | None, classes: dict[str, str], there: str | None
) -> None:
    claim = {"storageClassName": own} if own else {}
    spec: Object = {
        "volumes": [{"name": "s", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]
    }
    storage.translate(spec, classes)
    made = spec["volumes"][0]["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert made.get("storageClassName") == there
