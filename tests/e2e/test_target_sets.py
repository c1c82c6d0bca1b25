"""A set over a fleet: a target of each profile, and none left when the profile has gone."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from tests import inventory, kit, rights
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.cli import kubeconfigs
from vnode.kube import account_tokens
from vnode.kube.client import Client

PLACES = {"east": "c2", "west": "c3"}
PLUGIN = """
import json, os, pathlib, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
name = info["spec"]["cluster"]["config"]["clusterName"]
token = pathlib.Path(sys.argv[1], name).read_text()
version = "client.authentication.k8s.io/v1"
print(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}))
"""


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which the plugin finds tokens."""
    return tmp_path_factory.mktemp("tokens")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, tokens: Path) -> Iterator[Fleet]:
    """Yield three clusters that are not connected, and whose agents believe profiles."""
    folder = tmp_path_factory.mktemp("inventoried")
    plugin, config = folder / "plugin.py", folder / "agent.yaml"
    plugin.write_text(PLUGIN)
    run = {"command": sys.executable, "args": [str(plugin), str(tokens)]}
    provider = {"name": "secretreader", "execConfig": {**run, "provideClusterInfo": True}}
    configuration = {
        "apiVersion": "vnode.dev/v1alpha1",
        "kind": "AgentConfiguration",
        "inventory": {"namespaces": ["default"], "providers": [provider]},
    }
    config.write_text(yaml.safe_dump(configuration))
    words = ("c1", "c2", "c3", "--agents", f"--agent-arg=--config={config}")
    with started(tmp_path_factory, *words) as fleet:
        yield fleet


@pytest.fixture(autouse=True)
async def _clean() -> None:
    """Do nothing: this fleet is gone after its only test."""


@pytest.fixture
async def profiles(
    fleet: Fleet, tokens: Path, source: Client, c2: Client, c3: Client
) -> AsyncIterator[None]:
    """Create profiles of c2 and c3, with tokens of accounts that are Sources there."""
    await inventory.installed(source)
    for (name, cluster), target in zip(PLACES.items(), (c2, c3), strict=True):
        account = {"namespace": "default", "name": "fleet"}
        await target.create(kinds.SERVICE_ACCOUNTS, {"metadata": account})
        spec = {"serviceAccount": account}
        await target.create(kinds.CLUSTER_SOURCES, {"metadata": {"name": "c1"}, "spec": spec})
        lasting = {"expirationSeconds": 3600}
        granted = await account_tokens.request(target, "default", "fleet", lasting)
        await asyncio.to_thread((tokens / cluster).write_text, granted.text)
        reach, _name = kubeconfigs.read(fleet.kubeconfig(cluster))
        authority = base64.b64encode(reach.authority or b"").decode()
        access = inventory.access(reach.server, authority, cluster)
        healthy = {"type": "ControlPlaneHealthy", "status": "True", "reason": "Healthy"}
        since = objects.timestamp(datetime.now(UTC))
        conditions = [{**healthy, "message": "", "lastTransitionTime": since}]
        status = {"accessProviders": [access], "conditions": conditions}
        await inventory.add_profile(source, "default", name, status, env="prod", region=name)

    await inventory.add_profile(source, "default", "lab", {}, env="test")
    await rights.bind(source, "vnode-target-sets", "vnode-target-sets")
    yield
    await inventory.uninstall(source)


async def test_a_profile_that_goes_is_drained_and_leaves_nothing(
    fleet: Fleet, source: Client, c2: Client, profiles: None
) -> None:
    spec = {
        "profiles": {"selector": {"matchLabels": {"env": "prod"}}},
        "removal": {"after": "5s"},
    }
    # The role was bound after the agent had started, which asks for sets again within minutes.
    await asyncio.to_thread(fleet.run, "stop", "c1", "agent")
    await asyncio.to_thread(fleet.run, "start", "c1", "agent")
    made = {"metadata": {"name": "prod"}, "spec": spec}
    await source.create(kinds.CLUSTER_TARGET_SETS, made)
    await kit.until(
        *(source, kinds.CLUSTER_TARGETS),
        lambda all_: all_.keys() == PLACES.keys() and all(map(kit.is_ready, all_.values())),
    )
    waited = {
        "clustertargetset/prod": ("Ready", "RemovalHeld=False"),
        "clustertarget/east": ("Ready", "ControlPlaneHealthy"),
        "targetset/none": ("Ready=False",),
    }
    # None of its profiles are there; a set of one namespace is told of that in the same way.
    nothing = {"profiles": {"selector": {"matchLabels": {"env": "nowhere"}}}}
    none = {"metadata": {"name": "none", "namespace": "default"}, "spec": nothing}
    await source.create(kinds.TARGET_SETS, none)
    for what, conditions in waited.items():
        await asyncio.to_thread(fleet.wait, "c1", what, *conditions)

    for name in PLACES:
        constraints = json.dumps({"nodeSelector": {"region": name}})
        pod = kit.pod(name, annotations={keys.ELECT: "", keys.PROXY_CONSTRAINTS: constraints})
        await source.create(kinds.PODS, pod, "default")

    running = await kit.until(
        *(source, kinds.PODS),
        lambda pods: kit.running(pods, 2),
        namespace="default",
    )
    nodes = {objects.name(pod): objects.node_name(pod) for pod in running.values()}
    assert nodes == {"east": "admiralty-east", "west": "admiralty-west"}

    await source.delete(kinds.CLUSTER_PROFILES, "east", "default")
    await kit.until_one(
        *(source, kinds.NODES, "admiralty-east", ""),
        lambda node: objects.spec(node).get("unschedulable"),
    )
    for kind, selector in (
        (kinds.PODS, "metadata.name=east"),
        (kinds.CLUSTER_TARGETS, "metadata.name=east"),
        (kinds.NODES, "metadata.name=admiralty-east"),
    ):
        await kit.until_gone(source, kind, field_selector=selector)

    await kit.until_gone(c2, kinds.POD_CHAPERONS, "default")
    await kit.until_gone(c2, kinds.PODS, "default")
    left = await source.get(kinds.PODS, "west", "default")
    assert kit.phase(left) == "Running"
    await kit.until_one(
        *(source, kinds.CLUSTER_TARGET_SETS, "prod", ""),
        lambda obj: (objects.status(obj)["found"], objects.status(obj)["ready"]) == (1, 1),
    )
