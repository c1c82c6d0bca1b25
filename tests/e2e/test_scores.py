"""Scores on real API servers: pods follow them, wait for them, and vnode publishes its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests import addon_scores, kit, rights
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import cluster_scores, keys, kinds, names, objects
from vnode.api.errors import Invalid
from vnode.api.objects import Object
from vnode.kube.client import Client

C2, C3 = (names.virtual_node("default", name) for name in ("c2", "c3"))
OCM_C2 = "ocm-c2"
ROLES = ("vnode-scores", "vnode-published-scores")
CONFIGURATION = {
    "apiVersion": "vnode.dev/v1alpha1",
    "kind": "AgentConfiguration",
    "scores": {"publish": ["ClusterScore", "AddOnPlacementScore"]},
    "scheduling": {
        "profile": {
            "plugins": {"enabled": [{"name": "ClusterScores", "weight": 100}]},
            "pluginConfig": [
                {
                    "name": "ClusterScores",
                    "args": {
                        "scores": [
                            {"source": "AddOn", "resource": addon_scores.NAME, "name": "gpu"}
                        ],
                        "conditions": [
                            {
                                "source": "ClusterScore",
                                "name": "price",
                                "operator": "Le",
                                "values": [50],
                            }
                        ],
                    },
                }
            ],
        }
    },
}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file with the agents' configuration, which says nothing yet."""
    file = tmp_path_factory.mktemp("configured") / "agent.yaml"
    head = {key: CONFIGURATION[key] for key in ("apiVersion", "kind")}
    file.write_text(yaml.safe_dump(head))
    return file


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, config: Path) -> Iterator[Fleet]:
    """Yield three clusters, of which c1 sends pods to c2 and c3."""
    words = ("c1", "c2", "c3", "--agents", f"--agent-arg=--config={config}")
    with started(tmp_path_factory, *words, "--connect", "c1:c2", "--connect", "c1:c3") as fleet:
        yield fleet


@pytest.fixture(scope="module")
def is_scored() -> list[bool]:
    """Return where it is noted that the fleet has its scores."""
    return []


@pytest.fixture
async def scored(fleet: Fleet, source: Client, config: Path, is_scored: list[bool]) -> None:
    """Give the agent its rights and its configuration, and each target a score."""
    if is_scored:
        return

    is_scored.append(True)
    await addon_scores.install(source, OCM_C2, "c3")
    for role in ROLES:
        await rights.bind(source, role, role)

    # As the inventory would: the label is the ClusterProfile's.
    metadata = {"labels": {keys.OCM_CLUSTER_NAME: OCM_C2}}
    await source.patch(kinds.NODES, C2, {"metadata": metadata})
    await addon_scores.write(source, OCM_C2, gpu=-70)
    await addon_scores.write(source, "c3", gpu=-80)
    await asyncio.to_thread(config.write_text, yaml.safe_dump(CONFIGURATION))
    for verb in ("stop", "start"):
        await asyncio.to_thread(fleet.run, verb, "c1", "agent")


async def write_price(source: Client, target: str, value: int) -> None:
    """Write the ClusterScore of a target."""
    name = f"price-{target}"
    spec = {
        "target": {"namespace": "default", "name": target},
        "scores": [{"name": "price", "value": value}],
    }
    found = await source.list(kinds.CLUSTER_SCORES)
    if name in map(objects.name, found):
        await source.patch(kinds.CLUSTER_SCORES, name, {"spec": spec})
    else:
        await source.create(kinds.CLUSTER_SCORES, {"metadata": {"name": name}, "spec": spec})


async def placed(source: Client, name: str) -> str:
    """Return where a pod runs that is made now."""
    await source.create(kinds.PODS, kit.pod(name, annotations={keys.ELECT: ""}), "default")
    return objects.node_name(await kit.until_running(source, name))


@pytest.mark.usefixtures("scored")
async def test_pods_wait_for_conditions_and_follow_scores(source: Client) -> None:
    await source.create(kinds.PODS, kit.pod("p", annotations={keys.ELECT: ""}), "default")
    await kit.until_refused(source, "p", "score price is missing: no ClusterScore has it")
    for name in ("c2", "c3"):
        await write_price(source, name, 51)

    await kit.until_refused(source, "p", "score price is not <= 50")
    await write_price(source, "c3", 50)
    pod = await kit.until_running(source, "p")
    assert objects.node_name(pod) == C3

    await write_price(source, "c2", 0)
    assert await until_placed(source, "first", C2) == C2
    await addon_scores.write(source, OCM_C2, gpu=-90)
    assert await until_placed(source, "second", C3) == C3

    # What has ended counts 0, which is better than -90 and worse than 10.
    end = datetime.now(UTC) - timedelta(seconds=1)
    await addon_scores.write(source, "c3", gpu=100, until=objects.timestamp(end))
    await addon_scores.write(source, OCM_C2, gpu=10)
    assert await until_placed(source, "third", C2) == C2


@pytest.mark.usefixtures("scored")
async def test_what_targets_have_free_is_published(source: Client) -> None:
    for target in ("c2", "c3"):
        name = f"vnode-usage-{names.virtual_node('default', target)}"
        await kit.until_one(source, kinds.CLUSTER_SCORES, name, "", is_published)

    await kit.until_one(source, kinds.ADDON_PLACEMENT_SCORES, "vnode-usage", OCM_C2, is_published)
    listed = await source.list(kinds.ADDON_PLACEMENT_SCORES, "c3")
    assert [objects.name(obj) for obj in listed] == [addon_scores.NAME]  # no inventory names c3


async def test_a_score_out_of_range_is_refused(source: Client) -> None:
    for value in (-101, 101):
        with pytest.raises(Invalid, match="100"):
            await write_price(source, "far", value)


def is_published(obj: Object) -> bool:
    """Tell whether an object has scores that vnode has made, and that hold."""
    read = cluster_scores.read_add_on(obj)
    if "spec" in obj:
        read = cluster_scores.read_own(obj)[1]

    now = datetime.now(UTC)
    gpus, cpus = (read.find(f"{name}NodeAvailable", now).value for name in ("gpu", "cpu"))
    return gpus == -100 and cpus is not None and cpus > -100 and read.until is not None


async def until_placed(source: Client, prefix: str, node: str) -> str:
    """Make pods until one is on a node, as the agent may not have heard of the scores before."""
    for number in range(10):
        found = await placed(source, f"{prefix}-{number}")
        if found == node:
            return found

    return found
