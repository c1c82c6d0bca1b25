"""Which Source a disconnection deletes in the target, and which it leaves there."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError
from vnode.cli import kubeconfigs
from vnode.cli.access import Access
from vnode.cli.connect import desired
from vnode.cli.connect.desired import DesiredConnection
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.cli.main import cli
from vnode.cli.remove.report import RemovalReport
from vnode.cli.replace.replace import end_source
from vnode.kube.client import Client

GPU, CPU = "uid-of-gpu", "uid-of-cpu"


@pytest.fixture
def remote() -> APIServer:
    """Return the cluster that `--target` leads to, with a Source."""
    remote = APIServer("gpu", SystemClock())
    remote.add(kinds.NAMESPACES, {"metadata": {"name": "kube-system", "uid": GPU}})
    metadata = {"name": "source", "namespace": "team"}
    remote.add(kinds.SOURCES, {"metadata": metadata, "spec": {"serviceAccountName": "source"}})
    return remote


@pytest.fixture
def source(remote: APIServer, monkeypatch: pytest.MonkeyPatch) -> APIServer:
    """Return the cluster from which a Target is disconnected."""
    source = APIServer("source", SystemClock())
    source.add(kinds.NAMESPACES, {"metadata": {"name": "kube-system", "uid": "uid-of-source"}})

    def client(_access: Access, name: str = "") -> Client:
        return (remote if name in ("target", "former") else source).client()

    monkeypatch.setattr(Access, "client", client)
    return source


def add_target(server: APIServer, name: str, uid: str, *, account: str = "source") -> None:
    claims = {"sub": f"system:serviceaccount:team:{account}", "iat": 1, "exp": 2**33}
    token = f"x.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.x"
    config = kubeconfigs.build(ClusterEndpoint("https://c2", None), token, "team")
    secret = {"name": desired.secret_name(name), "key": desired.KEY, "context": kubeconfigs.CONTEXT}
    metadata = {"name": secret["name"], "namespace": "team"}
    data = {desired.KEY: base64.b64encode(config).decode()}
    server.add(kinds.SECRETS, {"metadata": metadata, "data": data})
    target = {"metadata": {"name": name, "namespace": "team"}, "status": {"clusterUID": uid}}
    server.add(kinds.TARGETS, {**target, "spec": {"kubeconfigSecret": secret}})


def disconnect(tmp_path: Path, name: str, *more: str) -> Result:
    file = tmp_path / "target"
    file.write_text("{}")
    words = ["disconnect", name, "-n", "team", "--target", str(file), "--yes", "--timeout", "1s"]
    return CliRunner().invoke(cli, [*words, *more])


def writes(server: APIServer) -> set[str]:
    return {request.verb for request in server.requests} - {"get", "list", "watch"}


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_nothing_is_deleted_with_the_kubeconfig_of_another_target(
    source: APIServer, remote: APIServer, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """The source is the same user in all its targets: the Source of the other one would go."""
    add_target(source, "gpu", GPU)
    add_target(source, "cpu", CPU)
    done = disconnect(tmp_path, "cpu", *more)
    assert isinstance(done.exception, ConfigError)
    assert "--target leads to another cluster than Target team/cpu" in str(done.exception)
    assert not writes(source)
    assert not writes(remote)


def test_a_source_goes_with_the_last_target_that_leads_to_its_cluster(
    source: APIServer, remote: APIServer, tmp_path: Path
) -> None:
    add_target(source, "gpu", GPU)
    add_target(source, "again", GPU)
    add_target(source, "cpu", CPU)
    assert "keeps the Source of" in disconnect(tmp_path, "gpu", "--dry-run").stdout
    done = disconnect(tmp_path, "gpu")
    assert (
        "the Source of system:serviceaccount:team:source in namespace team: Target team/again "
        "uses it" in done.stdout
    )
    assert not writes(remote)

    done = disconnect(tmp_path, "again")
    assert "target: source/team/source deleted" in done.stdout


def test_a_target_that_is_another_user_there_keeps_no_source(
    source: APIServer, tmp_path: Path
) -> None:
    add_target(source, "gpu", GPU)
    add_target(source, "again", GPU, account="another")
    assert "target: source/team/source deleted" in disconnect(tmp_path, "gpu").stdout


@pytest.mark.parametrize(
    ("former", "left"),
    [(GPU, 0), ("", 0), ("uid-of-new", 0), (CPU, 1)],
)
async def test_a_replacement_deletes_no_source_in_a_third_cluster(
    source: APIServer, remote: APIServer, former: str, left: int
) -> None:
    endpoint, report = ClusterEndpoint("https://c2", None), RemovalReport(say=lambda _text: None)
    connection = DesiredConnection("team", "team", "gpu", "source", endpoint, 3600)
    access = Access(Path("target"))  # by the fixture, of the cluster GPU
    await end_source(access, connection, (former, "uid-of-new"), False, report)()
    assert len(report.left) == left
    assert len(await remote.client().list(kinds.SOURCES)) == left
    if left:
        assert "--former leads to a third cluster" in report.left[0]
