"""Who may call the kubelet API of a virtual node: decided by a real API server."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
import trustme

from tests.integration import kubelets
from tests.integration.kubelets import Setting
from tests.kit import Fleet
from vnode.api import kinds
from vnode.api.errors import AlreadyExists


@pytest.fixture
def fleet(kubelet_fleet: Fleet) -> Fleet:
    """Two clusters with a kwok node each."""
    return kubelet_fleet


@pytest.fixture
async def node(fleet: Fleet) -> AsyncIterator[Setting]:
    """A virtual node without pods."""
    async with kubelets.virtual_node(fleet, f"v{os.urandom(3).hex()}") as setting:
        yield setting


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@asynccontextmanager
async def session(context: ssl.SSLContext | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=context or unverified(), force_close=True)
    async with aiohttp.ClientSession(connector=connector) as opened:
        yield opened


async def ask(
    node: Setting,
    path: str,
    *,
    token: str = "",
    context: ssl.SSLContext | None = None,
    method: str = "GET",
) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"https://{node.address}:{node.port}{path}"
    async with (
        session(context) as client,
        client.request(method, url, headers=headers) as response,
    ):
        return response.status, await response.text()


async def user(node: Setting, name: str, *subresources: str) -> str:
    """The token of a service account that may get those subresources of nodes."""
    source = node.source
    with suppress(AlreadyExists):
        await source.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": name}}, "default")

    if subresources:
        await source.apply(
            kinds.CLUSTER_ROLES,
            {
                "metadata": {"name": name},
                "rules": [
                    {
                        "apiGroups": [""],
                        "resources": [f"nodes/{subresource}" for subresource in subresources],
                        "verbs": ["get"],
                    }
                ],
            },
        )
        await source.apply(
            kinds.CLUSTER_ROLE_BINDINGS,
            {
                "metadata": {"name": name},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": name,
                },
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
            },
        )

    answer = await source.create(
        kinds.SERVICE_ACCOUNTS,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        "default",
        name=name,
        subresource="token",
    )
    return answer["status"]["token"]


@pytest.mark.parametrize("path", ["/pods", "/healthz", "/containerLogs/a/b/c", "/nothing"])
async def test_nobody_gets_401_everywhere(node: Setting, path: str):
    assert await ask(node, path) == (401, "Unauthorized")


async def test_an_unknown_token_gets_401(node: Setting):
    assert (await ask(node, "/pods", token="made-up"))[0] == 401


async def test_a_user_without_rights_gets_403_and_is_told_which(node: Setting):
    status, text = await ask(node, "/pods", token=await user(node, "rightless"))

    assert status == 403
    assert text == (
        "Forbidden (user=system:serviceaccount:default:rightless, verb=get, resource=nodes, "
        "subresource(s)=[pods proxy])\n"
    )


@pytest.mark.parametrize(
    ("right", "path", "status"),
    [
        ("pods", "/pods", 200),
        ("pods", "/runningpods/", 200),
        ("pods", "/configz", 403),
        ("healthz", "/healthz", 200),
        ("healthz", "/healthz/ping", 200),
        ("healthz", "/pods", 403),
        ("configz", "/configz", 200),
        ("proxy", "/pods", 200),
        ("proxy", "/configz", 200),
        ("proxy", "/containerLogs/default/none/app", 404),
        ("proxy", "/exec/default/none/app?output=1&command=x", 404),
        ("proxy", "/nothing", 404),
        ("proxy", "/stats/summary", 403),
        ("proxy", "/metrics/resource", 403),
        ("proxy", "/logs/", 403),
        ("log", "/logs/", 405),
        ("log", "/containerLogs/default/none/app", 403),
        ("stats", "/stats/summary", 501),
        ("metrics", "/metrics/resource", 501),
        ("checkpoint", "/checkpoint/a/b/c", 501),
    ],
)
async def test_each_right_opens_its_own_routes(node: Setting, right: str, path: str, status: int):
    token = await user(node, f"may-{right}", right)

    assert (await ask(node, path, token=token))[0] == status


async def test_reading_rights_do_not_open_posts(node: Setting):
    token = await user(node, "may-proxy", "proxy")

    status, _text = await ask(node, "/exec/default/none/app", token=token, method="POST")

    assert status == 403


async def test_a_certificate_of_the_clusters_ca_is_an_identity(node: Setting, fleet: Fleet):
    pki = fleet.folder / "c1" / "pki"
    context = unverified()
    context.load_cert_chain(
        pki / "apiserver-kubelet-client.crt", pki / "apiserver-kubelet-client.key"
    )

    assert (await ask(node, "/pods", context=context))[0] == 200


async def test_a_certificate_of_another_ca_does_not_get_through(node: Setting):
    context = unverified()
    trustme.CA().issue_cert("me", common_name="kube-apiserver").configure_cert(context)

    with pytest.raises(aiohttp.ClientError):
        await ask(node, "/pods", context=context)


async def test_another_client_ca_takes_effect_without_a_restart(node: Setting):
    other = trustme.CA()
    context = unverified()
    other.issue_cert("me", common_name="stranger").configure_cert(context)

    node.server._authorities._set(other.cert_pem.bytes().decode())
    while node.server._reload:
        await kubelets.asyncio.sleep(0.01)

    status, text = await ask(node, "/pods", context=context)
    assert status == 403
    assert "user=stranger" in text


@pytest.mark.parametrize(
    ("query", "status"),
    [("tailLines=x", 400), ("tailLines=-1", 422), ("sinceTime=x", 400), ("", 404)],
)
async def test_log_queries_are_checked_as_by_a_kubelet(node: Setting, query: str, status: int):
    token = await user(node, "may-proxy", "proxy")

    answer = await ask(node, f"/containerLogs/default/none/app?{query}", token=token)

    assert answer[0] == status
