"""An agent issues a token for the cluster of a ClusterProfile, shows it, and revokes it.

It is turned on as docs/issued-tokens.md says, in a fleet that has it off at first.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator

import msgspec
import pytest

from hack.fleetlib.inventory import NAMESPACE
from tests import kit
from tests.faults import agent_metrics
from tests.faults.bound_tokens import until_refused
from tests.fleets import started, vnode
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.errors import Denied, NotFound
from vnode.issuing.steps import IssueStep
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.kube.kubeconfig import Kubeconfig


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a source with one target, which it knows by a ClusterProfile."""
    words = ("c1", "c2", "--nodes", "1", "--agents", "--inventory", "--connect", "c1:c2")
    with started(tmp_path_factory, *words) as there:
        yield there


async def turn_issuing_on(fleet: Fleet, target: Client) -> None:
    """Do what docs/issued-tokens.md says, in both clusters, and start the agent again."""
    agent, account = "--serviceaccount=vnode:vnode", f"--serviceaccount={NAMESPACE}:c1"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    await target.create(kinds.CLUSTER_ROLES, {"metadata": {"name": "readers"}, "rules": rules})
    for cluster, words in (
        ("c1", ("clusterrolebinding", "vnode-issuing", "--clusterrole=vnode-issuing", agent)),
        ("c1", ("rolebinding", "issued", "--clusterrole=vnode-issued-secrets", agent)),
        ("c2", ("clusterrolebinding", "issuing", "--clusterrole=vnode-issuing-target", account)),
        ("c2", ("clusterrolebinding", "readers", "--clusterrole=readers", account)),
    ):
        await asyncio.to_thread(fleet.kubectl, cluster, "create", *words)

    file = fleet.folder / "c1" / "agent.yaml"
    file.write_text(f"{file.read_text()}issuing: {{enabled: true}}\n")
    for verb in ("stop", "start"):
        await asyncio.to_thread(fleet.run, verb, "c1", "agent")


REQUEST = {
    "metadata": {"name": "reader", "namespace": "default"},
    "spec": {
        "targetClusterProfile": {"namespace": NAMESPACE, "name": "c2"},
        "serviceAccountName": "reader",
        "serviceAccountNamespace": "accounts",
        "roles": [
            {
                "namespace": "work",
                "name": "readers",
                "rules": [
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
                ],
            }
        ],
        "expirationSeconds": 3600,
    },
}


async def test_a_token_is_issued_by_a_profile_shown_and_revoked(
    fleet: Fleet, source: Client, target: Client
) -> None:
    await turn_issuing_on(fleet, target)
    kind = kinds.AUTH_TOKEN_REQUESTS
    await source.create(kind, REQUEST)
    conditions = (*(step.value for step in IssueStep), "Expired=False")
    await asyncio.to_thread(fleet.wait, "c1", "authtokenrequest/reader", *conditions)
    secret = await source.get(kinds.SECRETS, "reader", "default")
    text = base64.b64decode(secret["data"]["kubeconfig"])
    async with Client(endpoint.from_kubeconfig(Kubeconfig.parse(text)), name="issued") as issued:
        await issued.list(kinds.CONFIG_MAPS, "work")
        for refused_kind, namespace in ((kinds.SECRETS, "work"), (kinds.CONFIG_MAPS, "default")):
            with pytest.raises(Denied):
                await issued.list(refused_kind, namespace)

        await check_shown(fleet)
        await source.delete(kind, "reader", "default")
        await kit.until_gone(source, kind, "default")
        with pytest.raises(NotFound):
            await source.get(kinds.SECRETS, "reader", "default")

        accounts = await target.list(kinds.SERVICE_ACCOUNTS, "accounts")
        assert "reader" not in map(objects.name, accounts)
        await until_refused(issued)

    await until_measured(fleet, 'vnode_issued_tokens_total{outcome="revoked"} 1.0')
    await until_measured(fleet, "vnode_issued_token_expiry_timestamp_seconds 0.0")


async def until_measured(fleet: Fleet, line: str) -> None:
    """Wait until the metrics say so: they are counted after the last write."""
    async with asyncio.timeout(kit.PATIENCE):
        while line not in await asyncio.to_thread(agent_metrics.text_of, fleet):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.2)


async def check_shown(fleet: Fleet) -> None:
    """See that commands and metrics tell of the token."""
    access = ("--kubeconfig", fleet.kubeconfig("c1"))
    listed = await asyncio.to_thread(vnode, "get", "tokens", "-n", "default", *access)
    cells = listed.out.splitlines()[1].split()
    assert cells[:5] == [
        *("reader", f"clusterprofile/{NAMESPACE}/c2", "accounts/reader", "True", "TokenRetrieved")
    ]
    done = await asyncio.to_thread(vnode, "doctor", "-o", "json", *access)
    found = {each["check"]: each for each in msgspec.json.decode(done.out)["findings"]}
    assert found["issued tokens"]["level"] == "ok"
    assert found["token default/reader"]["level"] == "ok"
    assert "vnode renews it on" in found["token default/reader"]["text"]
    shown = await asyncio.to_thread(agent_metrics.text_of, fleet)
    assert 'vnode_issued_tokens_total{outcome="issued"} 1.0' in shown
    runs = "vnode_exec_plugin_run_duration_seconds_count"
    assert f'{runs}{{outcome="succeeded",provider="secretreader"}}' in shown
