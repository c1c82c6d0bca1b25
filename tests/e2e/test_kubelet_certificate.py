"""API servers that check kubelets' certificates (`--kubelet-certificate-authority`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import kit
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.kube.client import Client

NODE = "admiralty-default-c2"
CONFIG = """
apiVersion: vnode.dev/v1alpha1
kind: AgentConfiguration
kubeletCertificate: {signer: kubernetes.io/kubelet-serving}
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield two clusters whose API servers check the certificates of kubelets.

    An API server trusts its own CA, with which the signer signs, and nothing else.
    """
    folder: Path = tmp_path_factory.mktemp("checked")
    config = folder / "agent.yaml"
    config.write_text(CONFIG)
    checked = "--kubelet-certificate-authority={folder}/pki/ca.crt"
    with started(
        tmp_path_factory,
        *("c1", "c2", "--agents", "--connect", "c1:c2"),
        *(f"--apiserver-arg={checked}", f"--agent-arg=--config={config}"),
    ) as fleet:
        yield fleet


@pytest.fixture(autouse=True)
async def _clean() -> None:
    """Do nothing: this fleet is gone after its only test."""


def certificate(node: dict[str, object]) -> dict[str, str]:
    return objects.condition(node, keys.KUBELET_CERTIFICATE) or {}


async def test_logs_and_exec_work_once_the_certificate_is_approved(
    fleet: Fleet, source: Client
) -> None:
    await source.create(kinds.PODS, kit.pod("one"), "default")
    await kit.until_running(source, "one")
    with pytest.raises(AssertionError, match="x509"):
        fleet.kubectl("c1", "logs", "one")

    node = await kit.until_one(
        source, kinds.NODES, NODE, "", lambda o: certificate(o).get("reason") == "NotApproved"
    )
    command = certificate(node)["message"].partition("run: kubectl ")[2].partition(";")[0]
    events = await kit.until(
        source,
        kinds.EVENTS,
        lambda all_: any(command in str(event.get("message")) for event in all_.values()),
        namespace="default",
        field_selector=f"involvedObject.name={NODE}",
    )
    assert any(e["reason"] == "KubeletCertificateNotApproved" for e in events.values())

    fleet.kubectl("c1", *command.split())

    await kit.until_one(
        source, kinds.NODES, NODE, "", lambda o: certificate(o).get("status") == "True"
    )
    assert "hello" in fleet.kubectl("c1", "logs", "one")
    assert fleet.kubectl("c1", "exec", "one", "--", "sh", "-c", "echo $CLUSTER").strip() == "c2"
    assert fleet.kubectl("c1", "get", "--raw", f"/api/v1/nodes/{NODE}/proxy/healthz") == "ok"
