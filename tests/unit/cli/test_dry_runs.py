"""A dry run says what would go, and nothing goes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.apiserver.server import APIServer
from tests.unit.cli.explained_pods import proxy
from vnode.api import keys, kinds, names
from vnode.api.clock import SystemClock
from vnode.api.kinds import Kind
from vnode.api.target_key import TargetKey
from vnode.cli.access import Access
from vnode.cli.main import cli
from vnode.cli.remove import own_namespace
from vnode.cli.remove.report import RemovalReport
from vnode.kube.client import Client
from vnode.nodes import virtual

NODE = names.virtual_node("default", "c2")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> APIServer:
    """Return the source that each command finds: it has a Target, a set, a Source, and a pod."""
    server = APIServer("c1", SystemClock())
    secret = {"name": "vnode-target-c2", "key": "config"}
    here = {"namespace": "default"}
    server.add(
        kinds.TARGETS,
        {"metadata": {"name": "c2", **here}, "spec": {"kubeconfigSecret": secret}},
    )
    server.add(kinds.SECRETS, {"metadata": {"name": "vnode-target-c2", **here}, "data": {}})
    server.add(kinds.TARGET_SETS, {"metadata": {"name": "gpus", **here}, "spec": {}})
    server.add(kinds.SOURCES, {"metadata": {"name": "c3", **here}, "spec": {"userName": "c3"}})
    server.add(kinds.NODES, virtual.registration(TargetKey("default", "c2")))
    pod = proxy(node=NODE, phase="Running")
    pod["metadata"] |= {"name": "web-1", "uid": "u", "annotations": {keys.ELECT: ""}}
    server.add(kinds.PODS, pod)

    def client(_access: Access, _name: str = "") -> Client:
        return server.client()

    monkeypatch.setattr(Access, "client", client)
    return server


def run(server: APIServer, *words: str) -> Result:
    """Run a command; assert that it only read."""
    done = CliRunner().invoke(cli, [*words, "--dry-run"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert {request.verb for request in server.requests} <= {"get", "list"}
    assert server.requests
    return done


def test_uninstall(server: APIServer) -> None:
    shown = run(server, "uninstall", "--delegates", "delete", "--crds", "--yes").stdout
    for line in (
        "deletes TargetSet default/gpus",
        f"deletes Target default/c2 and node/{NODE}",
        "1 pods run there: their containers end",
        "deletes Source default/c3",
        "deletes the webhook, the agent's roles",
        "deletes the CRDs",
    ):
        assert line in shown


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (kinds.SECRETS, ("deletes namespace/vnode, and all that", "vnode has not made for itself")),
        (kinds.CLAIMS, ("keeps namespace/vnode while persistentvolumeclaim/db is in it",)),
        (kinds.STATEFUL_SETS, ("keeps namespace/vnode while statefulset/db is in it",)),
        (kinds.CRON_JOBS, ("keeps namespace/vnode while cronjob/db is in it",)),
    ],
)
async def test_what_others_have_in_the_agents_namespace_is_said_and_their_data_stay(
    server: APIServer, kind: Kind, said: tuple[str, ...]
) -> None:
    server.add(kinds.NAMESPACES, {"metadata": {"name": "vnode"}})
    server.add(kind, {"metadata": {"name": "db", "namespace": "vnode"}, "spec": {}})
    shown = await asyncio.to_thread(run, server, "uninstall", "--delegates", "delete")
    assert all(line in shown.stdout for line in said)

    report = RemovalReport(say=lambda _text: None)
    await own_namespace.remove(server.client(), "vnode", report)
    assert bool(report.left) is (kind is not kinds.SECRETS)


def test_a_dry_run_of_uninstall_is_refused_as_the_uninstallation_would_be(
    server: APIServer,
) -> None:
    metadata = {"name": "q", "namespace": "default", "finalizers": [keys.ISSUED_TOKEN]}
    server.add(kinds.AUTH_TOKEN_REQUESTS, {"metadata": metadata, "spec": {}})
    done = CliRunner().invoke(cli, ["uninstall", "--delegates", "delete", "--dry-run"])
    assert "authtokenrequest/default/q, of 1, has an account" in str(done.exception)


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_cluster_that_admiralty_serves_is_not_taken_for_ours(
    server: APIServer, more: tuple[str, ...]
) -> None:
    """The kinds are the same: its Targets, Sources and pods would go."""
    server.add(kinds.MUTATING_WEBHOOKS, {"metadata": {"name": "admiralty"}})
    words = ["uninstall", "--delegates", "delete", "--yes", *more]
    done = CliRunner().invoke(cli, words)
    assert "Admiralty serves this cluster, and vnode does not" in str(done.exception)
    assert {request.verb for request in server.requests} <= {"get", "list"}

    server.add(kinds.MUTATING_WEBHOOKS, {"metadata": {"name": "vnode"}})
    assert "deletes Target default/c2" in run(server, *words).stdout


@pytest.mark.parametrize(
    ("words", "of_source"),
    [((), "keeps the Source of this cluster"), (("--target",), "deletes the Source of")],
)
def test_disconnect(
    server: APIServer, tmp_path: Path, words: tuple[str, ...], of_source: str
) -> None:
    file = tmp_path / "c2"
    file.write_text("{}")
    given = (*words, str(file)) if words else ()
    shown = run(server, "disconnect", "c2", "-n", "default", "--yes", *given).stdout
    assert f"deletes Target default/c2 and node/{NODE}" in shown
    assert "deletes Secret default/vnode-target-c2" in shown
    assert of_source in shown
    assert "1 pods run there" in shown


def test_a_secret_that_another_target_uses_is_said_to_stay(server: APIServer) -> None:
    secret = {"name": "vnode-target-c2", "key": "config"}
    metadata = {"name": "again", "namespace": "default"}
    server.add(kinds.TARGETS, {"metadata": metadata, "spec": {"kubeconfigSecret": secret}})
    shown = run(server, "disconnect", "c2", "-n", "default").stdout
    assert "keeps Secret default/vnode-target-c2: another Target uses it" in shown


@pytest.mark.parametrize("command", [("drain", "--force"), ("cordon",)])
def test_a_node_is_not_touched(server: APIServer, command: tuple[str, ...]) -> None:
    shown = run(server, command[0], "c2", "-n", "default", *command[1:]).stdout
    assert f"node/{NODE} cordoned (dry run)" in shown
    assert ("evicting pod default/web-1 (dry run)" in shown) is (command[0] == "drain")


def test_a_drain_that_would_be_refused_is_not_said_to_have_cordoned(server: APIServer) -> None:
    done = CliRunner().invoke(cli, ["drain", "c2", "-n", "default", "--dry-run"])
    assert f"unable to drain node '{NODE}' (dry run): cannot delete" in str(done.exception)
    assert {request.verb for request in server.requests} <= {"get", "list"}
