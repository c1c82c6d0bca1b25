"""A real API server accepts what the chart renders, and its namespace the pods."""

from __future__ import annotations

import pytest
import yaml

from tests import crds
from tests.chart.helm import CHART, helm, one
from tests.chart.matrix import MATRIX, NAMESPACE
from tests.fleets import SOURCE
from tests.kit import Fleet
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects

_MONITORING = "monitoring.coreos.com"
_OTHERS = (
    Kind(_MONITORING, "v1", "servicemonitors", "ServiceMonitor"),
    Kind(_MONITORING, "v1", "podmonitors", "PodMonitor"),
    Kind(_MONITORING, "v1", "prometheusrules", "PrometheusRule"),
    Kind("cert-manager.io", "v1", "certificates", "Certificate"),
    Kind("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute"),
)
"""Kinds of others that the chart has objects of: what is in them is their owners' affair."""
_ON_THE_HOST = ("host network", "cert-manager, addresses that stay")


@pytest.fixture(scope="module")
def server(bare_fleet: Fleet) -> Fleet:
    """Return a fleet whose source has what the rendered objects need.

    That is a namespace, its service accounts, and kinds of others.
    """
    text = yaml.safe_dump_all(map(crds.build, _OTHERS))
    bare_fleet.kubectl(SOURCE, "apply", "-f", "-", input=text)
    names = [f"crd/{kind.resource}" for kind in _OTHERS]
    bare_fleet.kubectl(SOURCE, "wait", "--for=condition=Established", *names)
    bare_fleet.kubectl(SOURCE, "create", "namespace", NAMESPACE)
    restricted = "pod-security.kubernetes.io/enforce=restricted"
    bare_fleet.kubectl(SOURCE, "label", "namespace", NAMESPACE, restricted)
    bare_fleet.kubectl(SOURCE, "create", "serviceaccount", "vnode", "-n", NAMESPACE)
    bare_fleet.kubectl(
        SOURCE, "create", "serviceaccount", "vnode-candidate-scheduler", "-n", NAMESPACE
    )
    return bare_fleet


@pytest.mark.parametrize("name", MATRIX)
def test_the_api_server_accepts_every_object(
    rendered: dict[str, Objects], server: Fleet, name: str
) -> None:
    text = yaml.safe_dump_all(rendered[name])
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")
    printed = server.kubectl(SOURCE, *words, input=text)
    assert len(printed.splitlines()) == len(rendered[name])


@pytest.mark.parametrize("name", [name for name in MATRIX if name not in _ON_THE_HOST])
def test_its_pods_pass_the_restricted_standard(
    rendered: dict[str, Objects], server: Fleet, name: str
) -> None:
    pods = [pod_of(obj) for obj in rendered[name] if obj["kind"] == "Deployment"]
    if pods:
        words = ("create", "--dry-run=server", "-f", "-")
        server.kubectl(SOURCE, *words, input=yaml.safe_dump_all(pods))


def test_pods_on_the_host_network_do_not(rendered: dict[str, Objects], server: Fleet) -> None:
    pod = pod_of(one(rendered["host network"], "Deployment", "vnode-agent"))
    with pytest.raises(AssertionError, match="violates PodSecurity"):
        server.kubectl(SOURCE, "create", "--dry-run=server", "-f", "-", input=yaml.safe_dump(pod))


def test_a_namespace_that_would_refuse_them_is_told_before_they_are_installed(
    server: Fleet,
) -> None:
    where = ("--namespace", NAMESPACE, "--kubeconfig", server.kubeconfig(SOURCE))
    words = ("install", "vnode", CHART, *where, "--dry-run=server")
    command = f"kubectl label --overwrite namespace {NAMESPACE} .*=privileged"
    with pytest.raises(AssertionError, match=command):
        helm(*words, values=MATRIX["host network"])


def pod_of(deployment: Object) -> Object:
    template = deployment["spec"]["template"]
    metadata = {**template["metadata"], "name": "p", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
