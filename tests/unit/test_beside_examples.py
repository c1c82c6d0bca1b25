"""What examples/beside tell tools of others fits what our kinds have and what agents write."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml

from tests.kit import ROOT
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.runtime.certs import webhook_bundle

FILE = ROOT / "examples" / "beside" / "kube-state-metrics.yaml"


def resources() -> Iterator[Any]:
    for resource in yaml.safe_load(FILE.read_text())["spec"]["resources"]:
        yield pytest.param(resource, id=resource["groupVersionKind"]["kind"])


def definition(kind: Object) -> Object:
    [found] = [
        crd["spec"]
        for crd in manifests.crds()
        if (crd["spec"]["group"], crd["spec"]["names"]["kind"]) == (kind["group"], kind["kind"])
    ]
    return found


def field(schema: Object, path: Sequence[str]) -> Object:
    for name in path:
        schema = schema.get("items", schema)["properties"][name]

    return schema


@pytest.mark.parametrize("resource", list(resources()))
def test_kube_state_metrics_is_told_of_fields_that_there_are(resource: Object) -> None:
    kind = resource["groupVersionKind"]
    crd = definition(kind)
    [version] = [each for each in crd["versions"] if each["name"] == kind["version"]]
    is_namespaced = crd["scope"] == "Namespaced"
    assert ("namespace" in resource["labelsFromPath"]) is is_namespaced
    for metric in resource["metrics"]:
        gauge = metric["each"]["gauge"]
        each = field(version["schema"]["openAPIV3Schema"], gauge["path"])
        for path in (gauge["valueFrom"], *gauge["labelsFromPath"].values()):
            assert field(each, path)["type"] == "string"


def ignored_by_flux() -> Iterator[Any]:
    for obj in yaml.safe_load_all((ROOT / "examples" / "beside" / "flux.yaml").read_text()):
        spec = obj["spec"]
        yield pytest.param((spec.get("driftDetection") or spec)["ignore"], id=obj["kind"])


@pytest.mark.parametrize("ignored", list(ignored_by_flux()))
def test_flux_leaves_what_agents_write_into_the_webhooks(ignored: Sequence[Object]) -> None:
    ours = manifests.webhook("vnode-system")
    [rule] = ignored
    assert rule["target"] == {"kind": ours["kind"], "name": ours["metadata"]["name"]}
    assert rule["paths"] == [operation["path"] for operation in agents_write(ours)]


def agents_write(configuration: Object) -> Sequence[Object]:
    trusted = copy.deepcopy(configuration)
    for hook in trusted["webhooks"]:
        hook["clientConfig"]["caBundle"] = "a bundle"

    patch = webhook_bundle.path_patch(trusted, "0" * 40)
    return [operation for operation in patch if operation["op"] != "test"]
