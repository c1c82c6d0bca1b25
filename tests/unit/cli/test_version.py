"""`vnode version`: of the command alone, and of agents, as far as a cluster says them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.apiserver.server import APIServer
from vnode import __version__
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.cli import main, version
from vnode.cli.version import AgentVersions

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def target(reason: str = "", message: str = "", name: str = "gpu") -> Object:
    made: Object = {"metadata": {"name": name, "namespace": "team-a"}}
    if reason:
        made["status"] = {
            "conditions": [
                {"type": "Agent", "status": "True", "reason": reason, "message": message}
            ]
        }
    return made


def summary(beat: datetime, **annotations: str) -> Object:
    made = {keys.HEARTBEAT: objects.timestamp(beat), **annotations}
    return {"metadata": {"name": keys.SUMMARY_NAME, "annotations": made}}


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (None, []),
        (AgentVersions("", []), ["Agent:  none"]),
        (
            AgentVersions("0.2.0", [target("Vnode", "the target runs vnode 0.1.9")]),
            ["Agent:  0.2.0", "", "NAMESPACE   TARGET   AGENT", "team-a      gpu      0.1.9"],
        ),
    ],
)
def test_the_text_names_each_agent(found: AgentVersions | None, lines: list[str]):
    assert list(version.text(found)) == [f"Client: {__version__}", *lines]


@pytest.mark.parametrize(
    ("reason", "message", "shown"),
    [
        ("NotVnode", "the target's agent is not vnode's", "not vnode"),
        ("Silent", "vnode 0.1.0 has sent no heartbeat", "no heartbeat"),
        ("", "", version.UNKNOWN),
    ],
)
def test_a_target_without_a_version_says_why(reason: str, message: str, shown: str):
    assert version.agent_of_target(target(reason, message)) == shown


@pytest.mark.parametrize(
    ("age", "annotations", "shown"),
    [
        (timedelta(0), {keys.AGENT_VERSION: "0.2.0"}, "0.2.0"),
        (timedelta(hours=1), {keys.AGENT_VERSION: "0.2.0"}, "0.2.0 (no heartbeat)"),
        (timedelta(0), {}, "not vnode"),
    ],
)
def test_an_agent_that_is_silent_is_not_taken_for_one_that_runs(
    age: timedelta, annotations: dict[str, str], shown: str
):
    assert version.agent_of(summary(NOW - age, **annotations), NOW) == shown


def test_programs_get_the_same():
    found = AgentVersions("0.2.0", [target("Vnode", "the target runs vnode 0.1.9")])
    assert version.document(None) == {"clientVersion": __version__}
    assert version.document(found) == {
        "clientVersion": __version__,
        "agentVersion": "0.2.0",
        "targets": [{"namespace": "team-a", "name": "gpu", "agentVersion": "0.1.9"}],
    }


async def test_a_cluster_is_asked_for_all_of_them():
    server = APIServer("c1", SystemClock())
    async with server.client() as client:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": "team-a"}})
        await client.create(kinds.CLUSTER_SUMMARIES, summary(datetime.now(UTC)))
        await client.create(kinds.TARGETS, target())
        await client.create(kinds.CLUSTER_TARGETS, {"metadata": {"name": "cpu"}})
        found = await version.read(client)

    assert found.agent == "not vnode"
    assert [objects.name(each) for each in found.targets] == ["gpu", "cpu"]


async def test_a_cluster_without_vnode_has_no_agent():
    server = APIServer("c1", SystemClock())
    async with server.client() as client:
        assert await version.read(client) == AgentVersions("", [])


def test_without_a_cluster_only_the_command_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for words in (["version"], ["version", "--client"]):
        assert CliRunner().invoke(main.cli, words).output == f"Client: {__version__}\n"


def test_a_cluster_that_cannot_be_asked_is_an_error_after_that(tmp_path: Path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({"current-context": "absent"}))

    done = CliRunner().invoke(main.cli, ["version", "--kubeconfig", str(kubeconfig)])

    assert done.output == f"Client: {__version__}\n"
    assert "absent" in str(done.exception)
