"""The process for admission of an agent that is held to namespaces."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests import background
from tests.held_cluster import HeldCluster
from vnode.agent import config
from vnode.agent.admission import AdmissionServer, AdmissionSettings
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Unreachable
from vnode.api.target_key import TargetKey


@pytest.mark.looptime
async def test_where_targets_may_not_be_read_nobody_guesses_which_a_pod_may_go_to(
    clock: Clock,
) -> None:
    cluster = HeldCluster(clock, "team-a", "team-b")
    cluster.open_("team-a")
    cluster.close("team-b")
    for name in ("team-a", "team-b"):
        metadata = {"name": "gpu", "namespace": name}
        cluster.server.add(kinds.TARGETS, {"metadata": metadata, "spec": {"self": True}})

    settings = AdmissionSettings("vnode", "192.0.2.1", 9443, namespaces=("team-a", "team-b"))
    server = AdmissionServer(cluster.client, settings, lambda _report: None)
    async with background.running(
        server._namespaces.run(), server._targets.run(), server._policies.run()
    ):
        await asyncio.sleep(5)
        assert server._finalizers("team-a") == [TargetKey("team-a", "gpu").finalizer]
        with pytest.raises(Unreachable, match="may not list targets in namespace team-b"):
            server._finalizers("team-b")


@pytest.mark.parametrize(
    ("names", "complaint"),
    [("[team-a, Team_B]", "'Team_B', which cannot be"), ("[team-a, team-a]", "one of them twice")],
)
def test_what_cannot_be_a_namespace_is_refused(tmp_path: Path, names: str, complaint: str) -> None:
    file = tmp_path / "agent.yaml"
    head = "apiVersion: vnode.dev/v1alpha1\nkind: AgentConfiguration\n"
    file.write_text(f"{head}namespaces: {names}\n")
    with pytest.raises(ConfigError, match=complaint):
        config.load(file)


def test_an_agent_is_held_to_no_namespaces_unless_it_is_told() -> None:
    assert config.load(None).namespaces == ()
