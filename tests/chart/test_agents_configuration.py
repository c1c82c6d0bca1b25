"""What values make of the agent's configuration: each of its fields, and cert-manager's part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.chart.helm import one, template
from tests.chart.matrix import NAMESPACE
from vnode.agent import config
from vnode.agent.config import AgentConfig
from vnode.api.objects import Object, Objects

_OF_THE_CHART = ("apiVersion", "kind", "namespaces")
"""Fields that are not for config in the values."""


def loaded(objs: Objects, folder: Path) -> AgentConfig:
    """Return the configuration as an agent reads it."""
    file = folder / "agent.yaml"
    file.write_text(one(objs, "ConfigMap", "vnode-agent")["data"]["agent.yaml"])
    return config.load(file)


def agent_pod(objs: Objects) -> Any:
    return one(objs, "Deployment", "vnode-agent")["spec"]["template"]["spec"]


def rules(objs: Objects, kind: str, name: str) -> set[tuple[str, str, str]]:
    """Return (resource, name, verb) of all that a role allows."""
    return {
        (resource, name, verb)
        for rule in one(objs, kind, name)["rules"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ["*"])
        for verb in rule["verbs"]
    }


def test_every_field_of_the_agent_is_taken(tmp_path: Path) -> None:
    fields = msgspec.to_builtins(AgentConfig())
    wanted = {name: value for name, value in fields.items() if name not in _OF_THE_CHART}

    objs = template({"controllerManager": {"config": wanted}})

    assert loaded(objs, tmp_path) == AgentConfig()


def test_each_agent_asks_an_issuer_of_its_namespace(
    rendered: dict[str, Objects], tmp_path: Path
) -> None:
    objs = rendered["cert-manager, an Issuer"]
    found = loaded(objs, tmp_path).kubelet_certificate
    assert found.signer == f"issuers.cert-manager.io/{NAMESPACE}.company"
    assert rules(objs, "Role", "vnode-issuer-user") == {("signers", "company", "reference")}
    assert not [obj for obj in objs if obj["metadata"]["name"] == "vnode-issuer-approver"]
    assert not [obj for obj in objs if obj["kind"] == "Certificate"]


def test_agents_approve_what_they_ask_of_a_cluster_issuer_if_they_may(
    rendered: dict[str, Objects], tmp_path: Path
) -> None:
    objs = rendered["cert-manager, a ClusterIssuer and approval"]
    signer = "clusterissuers.cert-manager.io/company"
    assert loaded(objs, tmp_path).kubelet_certificate.signer == signer
    assert rules(objs, "ClusterRole", "vnode-issuer-approver") == {
        ("certificatesigningrequests/approval", "*", "patch"),
        ("signers", signer, "approve"),
    }
    [who] = one(objs, "ClusterRoleBinding", "vnode-issuer-approver")["subjects"]
    assert who == {"kind": "ServiceAccount", "name": "vnode", "namespace": NAMESPACE}
    assert not [obj for obj in objs if obj["metadata"]["name"] == "vnode-issuer-user"]


def test_a_certificate_is_mounted_where_the_agent_reads_it(
    rendered: dict[str, Objects], tmp_path: Path
) -> None:
    objs = rendered["cert-manager, addresses that stay"]
    made: Object = one(objs, "Certificate")["spec"]
    assert made["ipAddresses"] == ["192.0.2.7", "192.0.2.8"]
    assert made["issuerRef"] == {
        "group": "cert-manager.io",
        "kind": "ClusterIssuer",
        "name": "company",
    }

    pod = agent_pod(objs)
    [volume] = [each for each in pod["volumes"] if each.get("secret")]
    # An agent must not wait for cert-manager, whose own pods may be elected ones.
    assert volume["secret"] == {"secretName": made["secretName"], "optional": True}
    [mount] = [
        each for each in pod["containers"][0]["volumeMounts"] if each["name"] == volume["name"]
    ]
    found = loaded(objs, tmp_path).kubelet_certificate
    assert found.certificate == mount["mountPath"] + "/tls.crt"
    assert found.key == mount["mountPath"] + "/tls.key"
    assert not found.signer
