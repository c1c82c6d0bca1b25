"""Tokens of Open Cluster Management's ManagedServiceAccounts connect Targets of ClusterProfiles.

CRDs, agent, copier and plugin are the add-on's own: see tests/managed_service_accounts.py.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from hack.fleetlib.inventory import NAMESPACE
from tests import kit
from tests.faults.bound_tokens import until_refused
from tests.faults.pod_flow import on
from tests.fleets import started
from tests.kit import Fleet
from tests.managed_service_accounts import ACCOUNTS, ADD_ON, NAME, Hub, get_programs, start_hub
from vnode.api import kinds, names, objects
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.kube.kubeconfig import Kubeconfig
from vnode.targets import conditions, expiry

C2 = names.virtual_node("", "c2")
COPY = f"c2-{NAME}"  # beside the profile
DUE = "2026-01-01T00:00:00Z"
LAST = conditions.CREDENTIALS_LAST


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a hub with one member, which the hub's agent of vnode does not know yet."""
    get_programs()
    words = ("c1", "c2", "--nodes", "1", "--agents", "--bare", "c1")
    with started(tmp_path_factory, *words) as there:
        start_hub(there)
        yield there


def token_in(secret: Object) -> str:
    """Return the token of a Secret."""
    return base64.b64decode(secret["data"]["token"]).decode()


async def until_copied(source: Client, *former: str) -> str:
    """Wait until another token of the add-on is beside the profile, and return it.

    The add-on may make two in a row: so it is not one certain token that is waited for.
    """
    copied = await kit.until_one(
        *(source, kinds.SECRETS, COPY, NAMESPACE),
        lambda secret: token_in(secret) not in former,
    )
    return token_in(copied)


async def rotate(source: Client) -> None:
    """Have the add-on rotate the token, which it does after eight minutes at the earliest."""
    due = {"status": {"expirationTimestamp": DUE}}
    await source.patch(ACCOUNTS, NAME, due, "c2", subresource="status")
    await kit.until_one(
        *(source, ACCOUNTS, NAME, "c2"),
        lambda account: objects.status(account)["expirationTimestamp"] != DUE,
    )


async def run(source: Client, name: str) -> None:
    """Make a pod for c2, and wait until it runs."""
    await source.create(kinds.PODS, kit.pod(name, nodeSelector=on(C2)), "default")
    await kit.until_running(source, name)


async def until_reason(source: Client, kind: str, reason: str) -> str:
    """Wait until the Target has a condition for that reason, and return its message."""
    target = await kit.until_one(
        *(source, kinds.CLUSTER_TARGETS, "c2", ""),
        lambda target: (objects.condition(target, kind) or {}).get("reason") == reason,
    )
    return str((objects.condition(target, kind) or {})["message"])


async def connect(source: Client, target: Client) -> None:
    """Grant the account of the member what a source may do, and name the profile in a Target."""
    user = f"system:serviceaccount:{ADD_ON}:{NAME}"
    granted = {"metadata": {"name": "hub"}, "spec": {"userName": user}}
    await target.create(kinds.CLUSTER_SOURCES, granted)
    spec = {"clusterProfile": {"namespace": NAMESPACE, "name": "c2"}}
    await source.create(kinds.CLUSTER_TARGETS, {"metadata": {"name": "c2"}, "spec": spec})


async def check_refused(fleet: Fleet, token: str) -> None:
    """Wait until the member refuses a token."""
    reach, _name = kubeconfigs.read(fleet.kubeconfig("c2"))
    text = kubeconfigs.build(reach, token, "default")
    async with Client(endpoint.from_kubeconfig(Kubeconfig.parse(text)), name="c2") as client:
        await until_refused(client)


async def test_a_managed_service_account_connects_renews_and_ends(
    fleet: Fleet, source: Client, target: Client
) -> None:
    await Hub(fleet, source, target).begin()
    first = await until_copied(source)
    await connect(source, target)
    await run(source, "first")
    await rotate(source)
    second = await until_copied(source, first)

    # Both tokens end with the account. The add-on makes the account again, but takes the token for
    # good: an API server remembers for ten seconds whose it was. Without the Secret it makes one.
    await target.delete(kinds.SERVICE_ACCOUNTS, NAME, ADD_ON)
    await source.delete(kinds.SECRETS, NAME, "c2")
    await until_copied(source, first, second)
    for ended in (first, second):
        await check_refused(fleet, ended)

    await run(source, "renewed")
    await until_reason(source, "Ready", "Connected")

    last = await until_copied(source, first, second)
    await source.delete(ACCOUNTS, NAME, "c2")
    await check_refused(fleet, last)
    await source.create(kinds.PODS, kit.pod("late", nodeSelector=on(C2)), "default")
    await until_reason(source, "Ready", "Unauthorized")
    assert f'secrets "{COPY}" not found' in await until_reason(source, LAST, expiry.NOT_RENEWED)
    pods = await target.list(kinds.PODS, "default")
    assert [kit.phase(pod) for pod in pods] == ["Running"] * 2
