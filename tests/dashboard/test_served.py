"""The dashboard of an agent: a follower that serves it, with the agent's own rights."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import yaml

from tests import another_agent, certificates, kit
from tests.integration.kubelets import address_towards
from tests.kit import Fleet
from vnode.api import kinds
from vnode.dashboard import page as pages
from vnode.dashboard.auth import PATH
from vnode.kube.client import Client

PORT = 19445


@pytest.fixture
async def served(fleet: Fleet, source: Client, tmp_path: Path) -> AsyncIterator[str]:
    """Yield the address of a follower's dashboard; the agent that leads goes on leading."""
    own = address_towards(source.endpoint.url)
    async with another_agent.running(fleet, own, tmp_path, dashboard=PORT):
        yield f"https://{own}:{PORT}{PATH}/"


async def asked(
    address: str, token: str = "", shown: certificates.KeyAndCertificate | None = None
) -> tuple[int, str]:
    context = shown.show(certificates.unverified()) if shown else certificates.unverified()
    connector = aiohttp.TCPConnector(ssl=context)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession(connector=connector, headers=headers) as session,
        session.get(address) as answer,
    ):
        assert answer.headers["Content-Security-Policy"] == pages.POLICY
        return answer.status, await answer.text()


async def test_only_callers_with_the_right_see_it(
    fleet: Fleet, source: Client, served: str
) -> None:
    await source.create(kinds.PODS, kit.pod("watched"), "default")
    await kit.until_running(source, "watched")
    for path in ("", "pods", "pods/default/watched", "events", "style.css"):
        assert (await asked(served + path))[0] == 401

    fleet.kubectl("c1", "create", "serviceaccount", "viewer")
    try:
        token = fleet.kubectl("c1", "create", "token", "viewer").strip()
        status, html = await asked(served, token)
        assert status == 403
        assert "system:serviceaccount:default:viewer may not get /dashboard" in html
        words = ["--clusterrole=vnode-dashboard", "--serviceaccount=default:viewer"]
        fleet.kubectl("c1", "create", "clusterrolebinding", "viewer", *words)
        # Another token is another caller, of whom no answer is kept.
        token = fleet.kubectl("c1", "create", "token", "viewer").strip()
        assert "watched" in (await asked(f"{served}pods", token))[1]
        pod_page = (await asked(f"{served}pods/default/watched", token))[1]
        assert "the pod runs in target" in pod_page
        assert "container main: running" in pod_page
        assert "default/c2" in (await asked(served, token))[1]
    finally:
        fleet.kubectl("c1", "delete", "serviceaccount", "viewer")
        fleet.kubectl("c1", "delete", "clusterrolebinding", "viewer", "--ignore-not-found")


async def test_a_client_certificate_of_the_cluster_counts_and_another_ones_does_not(
    fleet: Fleet, served: str, tmp_path: Path
) -> None:
    administrator = _administrator(fleet, "c1", tmp_path)
    assert (await asked(served, shown=administrator))[0] == 200
    assert (await asked(served, shown=_administrator(fleet, "c2", tmp_path)))[0] == 401


def _administrator(fleet: Fleet, cluster: str, folder: Path) -> certificates.KeyAndCertificate:
    [user] = yaml.safe_load(fleet.kubeconfig(cluster).read_text())["users"]
    files = []
    for field in ("client-certificate-data", "client-key-data"):
        files.append(folder / f"{cluster}-{field}")
        files[-1].write_bytes(base64.b64decode(user["user"][field]))

    return certificates.load(*files)
