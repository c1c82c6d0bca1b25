"""The chart, rendered: linted, compared with the command, and what values do to its pods."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests import kit, pages
from tests.chart.helm import CHART, KUBERNETES, helm, one, template
from tests.chart.matrix import DIGEST, MATRIX, NAMESPACE
from tests.chart.refused import REFUSED
from vnode.agent import config
from vnode.agent.config import AgentConfig
from vnode.api import documents, objects
from vnode.api.objects import Object, Objects
from vnode.cli import manifests, scheduler_config


def bare(obj: Object) -> Object:
    """Return the object without labels and annotations, which only Helm's objects have."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("labels", "annotations")}
    return {**obj, "metadata": metadata}


def keyed(objs: Objects) -> dict[tuple[str, str], Object]:
    return {(obj["kind"], objects.key(obj)): bare(obj) for obj in objs}


@pytest.mark.parametrize("name", MATRIX)
def test_lint_finds_nothing(name: str) -> None:
    assert "0 chart(s) failed" in helm("lint", CHART, "--strict", values=MATRIX[name])


@pytest.mark.parametrize("complaint", REFUSED)
def test_values_that_cannot_work_are_refused_with_the_cure(complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint.replace(".", r"\.")):
        template(REFUSED[complaint])


@pytest.mark.parametrize("name", ["defaults", "named", "configured", "named namespaces"])
def test_what_install_applies_is_what_the_chart_has(
    rendered: dict[str, Objects], name: str
) -> None:
    policy = MATRIX[name].get("webhook", {}).get("reinvocationPolicy", "Never")
    named = MATRIX[name].get("namespaces", [])
    hook = manifests.webhook(NAMESPACE, reinvocation=policy, named=named)
    applied = [
        *manifests.crds(),
        *manifests.rbac(NAMESPACE, named),
        *manifests.policies(NAMESPACE),
        hook,
    ]
    wanted, found = keyed(applied), keyed(rendered[name])
    assert {key: found.get(key) for key in wanted} == wanted
    unwanted = keyed(manifests.unwanted(allow_self_targets=False))
    assert not unwanted.keys() & found.keys()


def test_rights_for_self_targets_are_given_where_they_are_asked_for(
    rendered: dict[str, Objects],
) -> None:
    wanted = keyed([manifests.self_targets(NAMESPACE)])
    found = keyed(rendered["self targets"])
    assert {key: found.get(key) for key in wanted} == wanted


def test_policies_are_left_out_where_they_are_turned_off_or_unknown(
    rendered: dict[str, Objects],
) -> None:
    def policies(objs: Objects) -> int:
        return sum(obj["kind"].startswith("ValidatingAdmissionPolicy") for obj in objs)

    every = len(manifests.policies(NAMESPACE))
    assert policies(rendered["defaults"]) == policies(template(version="1.30.0")) == every
    assert policies(template(version="v1.30.4-eks-a1b2c3")) == every
    assert policies(rendered["no policies"]) == policies(template(version="1.29.9")) == 0


@pytest.mark.parametrize("name", MATRIX)
def test_the_agents_file_loads(rendered: dict[str, Objects], tmp_path: Path, name: str) -> None:
    values = MATRIX[name]
    for obj in rendered[name]:
        if obj["kind"] == "ConfigMap" and "agent.yaml" in obj["data"]:
            file = tmp_path / "agent.yaml"
            file.write_text(obj["data"]["agent.yaml"])
            loaded = config.load(file)
            assert loaded.source_controller == (name != "no sources")
            assert loaded.issuing.enabled == values.get("issuing", {}).get("enabled", False)
            assert list(loaded.namespaces) == values.get("namespaces", [])


def test_plugins_reach_the_agents_container(rendered: dict[str, Objects]) -> None:
    values = MATRIX["plugins"]["controllerManager"]
    pod = one(rendered["plugins"], "Deployment", "vnode-agent")["spec"]["template"]["spec"]
    [agent] = pod["containers"]
    assert agent["volumeMounts"][-3:] == values["extraVolumeMounts"]
    assert pod["volumes"][-3:] == values["extraVolumes"]
    copy, look = pod["initContainers"]
    security = {**agent["securityContext"], "readOnlyRootFilesystem": False}
    assert copy == {**values["initContainers"][0], "securityContext": security}
    assert look == {**values["initContainers"][1], "securityContext": agent["securityContext"]}


def images(objs: Objects) -> dict[str, str]:
    pods = [obj for obj in objs if obj["kind"] == "Deployment"]
    containers = [each["spec"]["template"]["spec"]["containers"][0] for each in pods]
    return {container["name"]: container["image"] for container in containers}


def test_images_are_of_the_global_registry_and_the_digest(rendered: dict[str, Objects]) -> None:
    mirror = "mirror.example.com:5000/k8s"
    assert images(rendered["registry"]) == {
        "agent": f"{mirror}/team/vnode@{DIGEST}",
        "kube-scheduler": f"{mirror}/kube-scheduler:v1.36.3@{DIGEST}",
    }
    for repository, image in (
        ("vnode", "m.example/vnode"),
        ("team/vnode", "m.example/team/vnode"),
        ("localhost/vnode", "m.example/vnode"),
        ("host:5000/team/vnode", "m.example/team/vnode"),
    ):
        values = {"controllerManager": {"image": {"repository": repository, "tag": "1"}}}
        objs = template({**values, "global": {"imageRegistry": "m.example"}})
        assert images(objs)["agent"] == f"{image}:1"


def test_all_pods_may_pull_with_all_secrets(rendered: dict[str, Objects]) -> None:
    words = ("template", "vnode", CHART, "--kube-version", KUBERNETES)
    hooks = documents.load_all(helm(*words, values=MATRIX["registry"]))
    pods = [obj["spec"]["template"] for obj in hooks if obj["kind"] == "Deployment"]
    pods += [obj for obj in hooks if obj["kind"] == "Pod"]
    assert len(pods) == 3
    for pod in pods:
        assert pod["spec"]["imagePullSecrets"] == [{"name": n} for n in ("ours", "more", "all")]

    pod = one(rendered["Admiralty's values"], "Deployment", "vnode-agent")["spec"]["template"]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert "imagePullSecrets" not in yaml.safe_dump(rendered["defaults"])


def test_a_cloud_knows_the_agents_account(rendered: dict[str, Objects]) -> None:
    objs = rendered["workload identity"]
    account = one(objs, "ServiceAccount", "vnode")
    assert account["metadata"]["annotations"] == {"azure.workload.identity/client-id": "0-1"}
    pod = one(objs, "Deployment", "vnode-agent")["spec"]["template"]
    assert pod["metadata"]["labels"]["azure.workload.identity/use"] == "true"
    other = one(objs, "ServiceAccount", "vnode-candidate-scheduler")
    assert "annotations" not in other["metadata"]


def test_what_is_off_in_the_values_is_off_in_the_pods() -> None:
    security = {"runAsNonRoot": False, "runAsUser": 0}
    rendered = template({"controllerManager": {"securityContext": security}})
    pod = one(rendered, "Deployment", "vnode-agent")["spec"]["template"]["spec"]
    assert pod["securityContext"].items() >= security.items()
    assert pod["securityContext"]["fsGroup"] == 65532


@pytest.mark.parametrize("page", ["inventory.md", "inventory-fleet.md"])
def test_values_of_the_pages_about_plugins_render(page: str) -> None:
    blocks = [b for b in pages.blocks(kit.ROOT / "docs" / page) if b.file.startswith("values-")]
    assert blocks
    for values in (yaml.safe_load(block.text) for block in blocks):
        pod = one(template(values), "Deployment", "vnode-agent")["spec"]["template"]["spec"]
        wanted = values["controllerManager"]["extraVolumeMounts"]
        assert pod["containers"][0]["volumeMounts"][-len(wanted) :] == wanted


@pytest.mark.parametrize("page", ["install.md", "dashboard.md"])
def test_values_of_the_pages_render(page: str) -> None:
    found = [b for b in pages.blocks(kit.ROOT / "docs" / page) if b.file.startswith("values-")]
    assert found
    for values in (yaml.safe_load(block.text) for block in found):
        assert one(template(values), "Deployment", "vnode-agent")


def test_the_candidate_schedulers_file_is_that_of_the_command(
    rendered: dict[str, Objects],
) -> None:
    found = one(rendered["defaults"], "ConfigMap", "vnode-candidate-scheduler")
    service = one(rendered["defaults"], "Service", "vnode")
    port = next(p["port"] for p in service["spec"]["ports"] if p["name"] == "extender")
    wanted = scheduler_config.build(f"https://vnode.{NAMESPACE}.svc:{port}", namespace=NAMESPACE)
    assert yaml.safe_load(found["data"]["config.yaml"]) == wanted


def test_agents_get_the_time_that_their_streams_have(rendered: dict[str, Objects]) -> None:
    for name, seconds in (
        ("defaults", AgentConfig().stream_grace_period_seconds),
        ("configured", 3600),
    ):
        agent = one(rendered[name], "Deployment", "vnode-agent")
        assert agent["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == seconds + 20


def test_crds_stay_unless_told_otherwise(rendered: dict[str, Objects]) -> None:
    def policies(name: str) -> set[str | None]:
        crds = [obj for obj in rendered[name] if obj["kind"] == "CustomResourceDefinition"]
        assert len(crds) == len(manifests.crds())
        annotations = [obj["metadata"].get("annotations", {}) for obj in crds]
        return {found.get("helm.sh/resource-policy") for found in annotations}

    assert policies("defaults") == {"keep"}
    assert policies("CRDs that go") == {None}


def test_one_replica_gets_no_budget_that_blocks_a_drain(rendered: dict[str, Objects]) -> None:
    def budgets(name: str) -> int:
        return sum(obj["kind"] == "PodDisruptionBudget" for obj in rendered[name])

    assert (budgets("defaults"), budgets("one replica"), budgets("no budgets")) == (2, 0, 0)


def test_agents_and_schedulers_keep_off_virtual_nodes(rendered: dict[str, Objects]) -> None:
    for name in ("defaults", "placed"):
        for obj in rendered[name]:
            if obj["kind"] == "Deployment":
                affinity = obj["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
                [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"][
                    "nodeSelectorTerms"
                ]
                [expression] = term["matchExpressions"]
                assert expression == {
                    "key": "virtual-kubelet.io/provider",
                    "operator": "DoesNotExist",
                }


def test_the_chart_packs_without_links_or_strays(tmp_path: Path) -> None:
    helm("package", CHART, "--destination", tmp_path)
    [package] = tmp_path.glob("*.tgz")
    done = subprocess.run(["tar", "-tzf", package], capture_output=True, text=True, check=True)
    packed = {line.removeprefix("vnode/") for line in done.stdout.splitlines()}
    files = {str(f.relative_to(CHART)) for f in CHART.rglob("*") if f.is_file()}
    assert packed == files - {".helmignore"} or packed == files
    assert not any(f.is_symlink() for f in CHART.rglob("*"))
