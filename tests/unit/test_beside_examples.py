"""What examples/beside tell tools of others fits what our kinds have and what agents write."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml
from lupa import lua51

from tests import certificates
from tests.kit import ROOT
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.runtime.certs import webhook_bundle

BESIDE = ROOT / "examples" / "beside"
FILE = BESIDE / "kube-state-metrics.yaml"
OF_PODS = "PodChaperon"  # its conditions are those of its pod


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


def kinds_with_conditions(*types: str) -> set[str]:
    """Return the kinds whose columns show conditions: those of the types, or any."""
    wanted = "|".join(types) or ".+"
    pattern = re.compile(rf'\.status\.conditions\[\?\(@\.type=="({wanted})"\)\]\..+')
    return {
        crd["spec"]["names"]["kind"]
        for crd in manifests.crds()
        for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]
        if pattern.fullmatch(column["jsonPath"])
    } - {OF_PODS}


def field(schema: Object, path: Sequence[str]) -> Object:
    for name in path:
        schema = schema.get("items", schema)["properties"][name]

    return schema


@pytest.mark.parametrize("resource", list(resources()))
def test_kube_state_metrics_is_told_of_fields_that_there_are(resource: Object) -> None:
    kind = resource["groupVersionKind"]
    crd = definition(kind)
    [version] = [each for each in crd["versions"] if each["name"] == kind["version"]]
    words = re.findall("[A-Z][a-z]+", kind["kind"])
    labels = {words[-1].lower(): ["metadata", "name"]}
    if crd["scope"] == "Namespaced":
        labels["namespace"] = ["metadata", "namespace"]

    assert resource["labelsFromPath"] == labels
    names = [metric["name"] for metric in resource["metrics"]]
    assert names == [f"vnode_{'_'.join(words).lower()}_condition"]
    for metric in resource["metrics"]:
        gauge = metric["each"]["gauge"]
        each = field(version["schema"]["openAPIV3Schema"], gauge["path"])
        for path in (gauge["valueFrom"], *gauge["labelsFromPath"].values()):
            assert field(each, path)["type"] == "string"


def test_kube_state_metrics_is_told_of_each_kind_whose_columns_show_conditions() -> None:
    told = [param.values[0]["groupVersionKind"]["kind"] for param in resources()]
    assert sorted(told) == sorted(kinds_with_conditions())


def ignored_by_flux() -> Iterator[Any]:
    for obj in yaml.safe_load_all((BESIDE / "flux.yaml").read_text()):
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


ARGO: dict[str, str] = yaml.safe_load((BESIDE / "argocd-cm.yaml").read_text())["data"]
HEALTH = "resource.customizations.health."
IGNORED = "resource.customizations.ignoreDifferences."
EARLIER = "the status is about an earlier generation"
CHECKS = {key.removeprefix(HEALTH): text for key, text in ARGO.items() if key.startswith(HEALTH)}


def test_argo_cd_is_told_of_each_kind_that_is_ready_or_not() -> None:
    ready = kinds_with_conditions("Ready") | {"TargetSet", "ClusterTargetSet"}
    named = [crd["spec"] for crd in manifests.crds() if crd["spec"]["names"]["kind"] in ready]
    assert sorted(CHECKS) == sorted(f"{spec['group']}_{spec['names']['kind']}" for spec in named)
    assert all(key.startswith((HEALTH, IGNORED)) for key in ARGO)


def ready_or_not(status: str, *, observed: int | None = 2) -> Object:
    """Return an object with two conditions, of which Ready has that status."""
    conditions = [
        {"type": "Accepted", "status": "True", "message": "not this one"},
        {"type": "Ready", "status": status, "message": "why"},
    ]
    about = {} if observed is None else {"observedGeneration": observed}
    return {"metadata": {"generation": 2}, "status": {**about, "conditions": conditions}}


@pytest.mark.parametrize("kind", CHECKS)
@pytest.mark.parametrize(
    ("obj", "health", "message"),
    [
        ({"metadata": {"generation": 1}}, "Progressing", "no agent has looked at it yet"),
        (ready_or_not("True"), "Healthy", "why"),
        (ready_or_not("True", observed=None), "Healthy", "why"),  # of a version before this one
        (ready_or_not("False"), "Degraded", "why"),
        (ready_or_not("Unknown"), "Progressing", "why"),
        (ready_or_not("True", observed=1), "Progressing", EARLIER),
    ],
)
def test_argo_cd_calls_kinds_healthy_that_are_ready(
    kind: str, obj: Object, health: str, message: str
) -> None:
    assert argo_cd_says(CHECKS[kind], obj) == (health, message)


def argo_cd_says(check: str, obj: Object) -> tuple[str, str]:
    """Run a check as Argo CD does, in Lua 5.1 without its libraries of the machine."""
    runtime = lua51.LuaRuntime(register_eval=False, register_builtins=False)
    for library in ("os", "io", "package", "debug", "require", "dofile", "loadfile", "python"):
        runtime.globals()[library] = None

    runtime.globals().obj = runtime.table_from(obj, recursive=True)
    found = runtime.execute(check)
    return found["status"], found["message"]


def test_argo_cd_ignores_what_agents_write_into_the_webhooks() -> None:
    [key] = [key for key in ARGO if key.startswith(IGNORED)]
    ours = manifests.webhook("vnode-system")
    group, _, kind = key.removeprefix(IGNORED).partition("_")
    assert (group, kind) == (ours["apiVersion"].partition("/")[0], ours["kind"])
    by_address = copy.deepcopy(ours)
    for hook in by_address["webhooks"]:
        hook["clientConfig"] = {"url": f"https://a{hook['clientConfig']['service']['path']}"}

    written = [
        operation["path"]
        for configuration in (ours, by_address)
        for operation in (*trusting(configuration), *agents_write(configuration))
    ]
    wanted = {re.sub(r"^/webhooks/\d+", ".webhooks[]?", path).replace("/", ".") for path in written}
    assert set(yaml.safe_load(ARGO[key])["jqPathExpressions"]) == wanted


def trusting(configuration: Object) -> Sequence[Object]:
    patch = webhook_bundle.trust_patch(configuration, certificates.issue("vnode", ca=True).pem)
    return [operation for operation in patch if operation["op"] != "test"]
