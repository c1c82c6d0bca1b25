"""Who may call the kubelet API of a virtual node: decided by a real API server."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from tests import certificates
from tests.certificates import CLIENT, SERVER, KeyAndCertificate, issue, unverified
from tests.integration import kubelets
from tests.integration.kubelets import Setting
from tests.kit import Fleet
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import AlreadyExists

MINUTE = timedelta(minutes=1)
wrong = issue("kube-apiserver", issue("wrong", ca=True), usages=[CLIENT])


@pytest.fixture
def fleet(kubelet_fleet: Fleet) -> Fleet:
    """Return two clusters with a kwok node each."""
    return kubelet_fleet


@pytest.fixture
async def node(fleet: Fleet) -> AsyncIterator[Setting]:
    """Yield a virtual node without pods."""
    async with kubelets.virtual_node(fleet, f"v{os.urandom(3).hex()}") as setting:
        yield setting


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


async def user(node: Setting, name: str, *subresources: str, verb: str = "*") -> str:
    """Return the token of a service account with rights to those subresources of nodes."""
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
                        "verbs": [verb],
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


@dataclass(frozen=True)
class Route:
    """One way to call a virtual node, and the rights any of which opens it."""

    method: str
    path: str
    rights: tuple[str, ...]

    @property
    def verb(self) -> str:
        """The verb that it takes: unlike a kubelet, `create` for streams, also by GET."""
        streams = self.path.startswith(("/exec/", "/attach/", "/portForward/"))
        return "create" if streams else VERBS[self.method]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def routes() -> list[Route]:
    """Return those of a kubelet."""
    pod, container = "default/none", "default/none/app"
    with_uid = "default/none/an-uid"
    table: list[tuple[str, str, tuple[str, ...]]] = [
        ("GET", f"/containerLogs/{container}", ("proxy",)),
        ("POST", f"/run/{container}", ("proxy",)),
        ("POST", f"/run/{with_uid}/app", ("proxy",)),
        ("POST", f"/checkpoint/{container}", ("checkpoint",)),
        ("GET", "/stats/summary", ("stats",)),
        ("POST", "/stats/summary", ("stats",)),
        ("PUT", "/debug/flags/v", ("proxy",)),
        ("GET", "/debug/pprof/profile", ("proxy",)),
        ("GET", "/flagz", ("configz",)),
        ("GET", "/statusz", ("statusz",)),
        ("GET", "/nothing", ("proxy",)),
        ("DELETE", "/pods", ("pods", "proxy")),
    ]
    for method in ("GET", "POST"):
        for name in ("exec", "attach"):
            table.append((method, f"/{name}/{container}", ("proxy",)))
            table.append((method, f"/{name}/{with_uid}/app", ("proxy",)))

        table.append((method, f"/portForward/{pod}", ("proxy",)))
        table.append((method, f"/portForward/{with_uid}", ("proxy",)))

    for paths, rights in (
        (("/pods", "/pods/", "/runningpods", "/runningpods/"), ("pods", "proxy")),
        (("/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop"), ("healthz", "proxy")),
        (("/metrics", "/metrics/resource", "/metrics/cadvisor", "/metrics/probes"), ("metrics",)),
        (("/metrics/slis",), ("metrics",)),
        (("/logs/", "/logs/kubelet.log"), ("log",)),
        (("/configz",), ("configz", "proxy")),
    ):
        table += [("GET", path, rights) for path in paths]

    return [Route(*row) for row in table]


EVERY_ROUTE = pytest.mark.parametrize("route", routes(), ids=str)
RIGHTS = ("proxy", "pods", "healthz", "configz", "stats", "metrics", "log", "checkpoint", "statusz")
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "DELETE": "delete"}


@EVERY_ROUTE
async def test_nobody_gets_401(node: Setting, route: Route):
    assert await ask(node, route.path, method=route.method) == (401, "Unauthorized")


@EVERY_ROUTE
async def test_a_certificate_of_a_wrong_ca_gets_401(node: Setting, route: Route):
    context = wrong.show(unverified())

    answer = await ask(node, route.path, method=route.method, context=context)

    assert answer == (401, "Unauthorized")


@EVERY_ROUTE
async def test_a_user_without_rights_gets_403_and_is_told_which(node: Setting, route: Route):
    token = await user(node, "rightless")

    status, text = await ask(node, route.path, method=route.method, token=token)

    assert status == 403
    assert text == (
        "Forbidden (user=system:serviceaccount:default:rightless, "
        f"verb={route.verb}, resource=nodes, subresource(s)=[{' '.join(route.rights)}])\n"
    )


@EVERY_ROUTE
async def test_each_of_its_rights_opens_a_route_and_all_others_do_not(node: Setting, route: Route):
    for right in route.rights:
        token = await user(node, f"may-{right}", right)
        status, text = await ask(node, route.path, method=route.method, token=token)
        assert status not in (401, 403), text

    others = [right for right in RIGHTS if right not in route.rights]
    token = await user(node, f"may-not-{'-'.join(route.rights)}", *others)
    assert (await ask(node, route.path, method=route.method, token=token))[0] == 403


async def test_an_unknown_token_gets_401(node: Setting):
    assert (await ask(node, "/pods", token="made-up"))[0] == 401


async def test_reading_rights_do_not_open_posts(node: Setting):
    token = await user(node, "may-read", "proxy", verb="get")

    assert (await ask(node, "/containerLogs/default/none/app", token=token))[0] == 404
    assert (await ask(node, "/run/default/none/app", token=token, method="POST"))[0] == 403


@pytest.mark.parametrize("stream", ["exec/default/none/app", "portForward/default/none"])
async def test_reading_rights_open_no_stream_but_rights_to_create_do(node: Setting, stream: str):
    reader = await user(node, "may-get", "proxy", verb="get")
    writer = await user(node, "may-create", "proxy", verb="create")
    for method in ("GET", "POST"):
        assert (await ask(node, f"/{stream}", token=reader, method=method))[0] == 403
        assert (await ask(node, f"/{stream}", token=writer, method=method))[0] in (400, 404)


async def test_a_certificate_of_the_clusters_ca_is_an_identity(node: Setting, fleet: Fleet):
    pki = fleet.folder / "c1" / "pki"
    context = certificates.kubelet_client(pki).show(unverified())

    assert (await ask(node, "/pods", context=context))[0] == 200


def cluster_ca(fleet: Fleet) -> KeyAndCertificate:
    pki = fleet.folder / "c1" / "pki"
    return certificates.load(pki / "ca.crt", pki / "ca.key")


async def test_whom_a_certificate_names_is_told_with_the_refusal(node: Setting, fleet: Fleet):
    shown = issue("somebody", cluster_ca(fleet), groups=["team"], usages=[CLIENT])

    status, text = await ask(node, "/pods", context=shown.show(unverified()))

    assert status == 403
    assert "user=somebody" in text


async def test_the_groups_of_a_certificate_have_rights(node: Setting, fleet: Fleet):
    shown = issue("admin", cluster_ca(fleet), groups=["system:masters"], usages=[CLIENT])

    assert (await ask(node, "/pods", context=shown.show(unverified())))[0] == 200


async def test_an_intermediate_of_the_clusters_ca_is_followed(node: Setting, fleet: Fleet):
    team = issue("team-ca", cluster_ca(fleet), ca=True)
    shown = issue("admin", team, groups=["system:masters"], usages=[CLIENT])

    assert (await ask(node, "/pods", context=shown.show(unverified(), team)))[0] == 200
    assert (await ask(node, "/pods", context=shown.show(unverified())))[0] == 401


@pytest.mark.parametrize("kind", ["expired", "not yet valid", "for servers", "of itself", "lie"])
async def test_a_bad_certificate_gets_401_whatever_it_says(node: Setting, fleet: Fleet, kind: str):
    ca, masters = cluster_ca(fleet), ["system:masters"]
    namesake = issue("kubernetes", ca=True)
    shown = {
        "expired": issue("admin", ca, groups=masters, usages=[CLIENT], end=-MINUTE),
        "not yet valid": issue("admin", ca, groups=masters, usages=[CLIENT], start=MINUTE),
        "for servers": issue("admin", ca, groups=masters, usages=[SERVER]),
        "of itself": issue("admin", groups=masters, usages=[CLIENT]),
        "lie": issue("admin", namesake, groups=masters, usages=[CLIENT]),
    }[kind]

    answer = await ask(node, "/pods", context=shown.show(unverified(), namesake, ca))

    assert answer == (401, "Unauthorized")


async def test_a_good_token_counts_beside_a_bad_certificate(node: Setting):
    token = await user(node, "may-pods", "pods")

    assert (await ask(node, "/pods", token=token, context=wrong.show(unverified())))[0] == 200


async def test_another_client_ca_counts_from_the_next_request_on(fleet: Fleet, tmp_path: Path):
    """Also on a connection that is open: what the old one signed opens nothing any more."""
    old, new = issue("old", ca=True), issue("new", ca=True)
    file = tmp_path / "clients.crt"
    file.write_bytes(old.pem)
    clock = Turned()
    name = f"v{os.urandom(3).hex()}"
    async with kubelets.virtual_node(fleet, name, client_ca_file=file, clock=clock) as node:
        url = f"https://{node.address}:{node.port}/pods"
        contexts = [issue("x", ca, usages=[CLIENT]).show(unverified()) for ca in (old, new)]
        async with AsyncExitStack() as stack:
            sessions = [
                await stack.enter_async_context(
                    aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=1))
                )
                for context in contexts
            ]
            assert [await _status(one, url) for one in sessions] == [403, 401]

            file.write_bytes(new.pem)
            await clock.turn()
            assert [await _status(one, url) for one in sessions] == [401, 403]


async def _status(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url) as answer:
        await answer.read()
        return answer.status


class Turned(SystemClock):
    """A clock whose sleeps end when a test says so."""

    def __init__(self) -> None:
        self._asleep: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def sleep(self, seconds: float) -> None:
        over = asyncio.Event()
        await self._asleep.put(over)
        await over.wait()

    async def turn(self) -> None:
        """End the present sleep, and wait for the next one."""
        (await self._asleep.get()).set()
        self._asleep.put_nowait(await self._asleep.get())


@pytest.mark.parametrize(
    ("query", "status"),
    [("tailLines=x", 400), ("tailLines=-1", 422), ("sinceTime=x", 400), ("", 404)],
)
async def test_log_queries_are_checked_as_by_a_kubelet(node: Setting, query: str, status: int):
    token = await user(node, "may-proxy", "proxy")

    answer = await ask(node, f"/containerLogs/default/none/app?{query}", token=token)

    assert answer[0] == status
