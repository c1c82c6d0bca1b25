"""Spark: real drivers make real executors through the source's API, in their own target.

Drivers and executors are Spark's own programs, run from the machine's copy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from hack.fleetlib.tools import spark as installed
from tests import kit
from tests.e2e.gang_pods import SLOT, offer
from tests.frameworks import installation, members, spark
from tests.frameworks.spark import Submitter
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

APPLICATIONS = Kind("sparkoperator.k8s.io", "v1beta2", "sparkapplications", "SparkApplication")
DRIVERS, EXECUTORS = "spark-role=driver", "spark-role=executor"
RIGHTS = ("vnode-source-service-accounts", "vnode-source-network-policies")
"""What a source may do in targets beside the usual: Spark has an account, and NetworkPolicies."""

MADE = (kinds.CONFIG_MAPS, kinds.SERVICES, kinds.NETWORK_POLICIES)
"""What Spark makes for an application beside its pods."""

OTHER = {"c2": "c3", "c3": "c2"}


@pytest.fixture(scope="module")
def submitter(fleet: Fleet) -> Iterator[Submitter]:
    """Yield who submits; drivers have an account with rights in the source, and its tokens."""
    submitter = Submitter(fleet, installed.locate())
    submitter.prepare()
    account = f"--serviceaccount=default:{spark.ACCOUNT}"
    fleet.kubectl("c1", "create", "serviceaccount", spark.ACCOUNT)
    fleet.kubectl("c1", "create", "rolebinding", "spark", "--clusterrole=edit", account)
    minter = ("--clusterrole=vnode-token-minter", "--serviceaccount=vnode:vnode")
    fleet.kubectl("c1", "create", "rolebinding", "vnode-token-minter", *minter)
    settings = {keys.TOKENS: f"source={submitter.address}", keys.CREATE_SERVICE_ACCOUNTS: "true"}
    for target in members.TARGETS.values():
        words = (f"{key}={value}" for key, value in settings.items())
        fleet.kubectl("c1", "annotate", "target", target, *words)
        path = "-o=jsonpath={.items[0].spec.serviceAccountName}"
        by = f"--serviceaccount=default:{fleet.kubectl(target, 'get', 'sources', path)}"
        for role in RIGHTS:
            binding = ("create", "rolebinding", role, f"--clusterrole={role}", by)
            fleet.kubectl(target, *binding)

    yield submitter
    for target in members.TARGETS.values():
        fleet.kubectl("c1", "annotate", "target", target, *(f"{key}-" for key in settings))
        fleet.kubectl(target, "delete", "rolebinding", *RIGHTS)

    fleet.kubectl("c1", "delete", "rolebinding", "vnode-token-minter")


@pytest.fixture(autouse=True)
async def _applications(
    source: Client, targets: dict[str, Client], submitter: Submitter
) -> AsyncIterator[None]:
    await source.create(kinds.CONFIG_MAPS, spark.PROGRAMS, "default")
    yield
    query = {"labelSelector": DRIVERS}
    await source.request("DELETE", kinds.PODS.path("default"), query=query)
    await source.delete(kinds.CONFIG_MAPS, "spark-programs", "default")


async def _executors(fleet: Fleet, source: Client, driver: str, count: int) -> list[str]:
    """Return the executors that have run tasks for a driver, once they are so many."""
    found: list[str] = []
    await kit.until_one(source, kinds.PODS, driver, "default", _has_started)
    async with members.log(fleet, driver) as lines:
        async for line in lines:
            if line.startswith("executor "):
                found.append(line.split()[1])

            if len(found) == count:
                return found

    raise AssertionError(f"the log of {driver} ended: {found}")


def _has_started(driver: Object) -> bool:
    return kit.phase(driver) in ("Running", "Succeeded")


async def _until_ended(source: Client, driver: str) -> None:
    await kit.until_one(
        source, kinds.PODS, driver, "default", lambda pod: kit.phase(pod) == "Succeeded"
    )
    await kit.until_gone(source, kinds.PODS, "default", label_selector=EXECUTORS)


async def test_a_driver_has_executors_beside_it(
    fleet: Fleet, source: Client, targets: dict[str, Client], submitter: Submitter
) -> None:
    driver = submitter.submit("count", 2, 3, spark.template(submitter.where))
    first = await _executors(fleet, source, driver, 2)
    before = await members.until_running(source, "spark-role", 3)
    assert before.keys() == {driver, *first}
    target = members.target_of(before)
    for kind in MADE:
        names = [objects.name(each) for each in await targets[target].list(kind, "default")]
        assert any(name.startswith("count-") for name in names), (kind.plural, names)

    await source.delete(kinds.PODS, first[0], "default")
    back = await members.until_back(source, "spark-role", before, first[0])
    assert members.target_of(back) == target
    assert back.keys() < {driver, *await _executors(fleet, source, driver, 3)}
    await _until_ended(source, driver)
    await source.delete(kinds.PODS, driver, "default")
    for client in (source, targets[target]):
        for kind in (kinds.PODS, *MADE):
            await kit.until(client, kind, _has_none, namespace="default")


def _has_none(found: dict[str, Object]) -> bool:
    """Tell whether nothing is left of the application `count`."""
    return not any(objects.name(each).startswith("count-") for each in found.values())


async def test_executors_end_with_their_driver(
    fleet: Fleet, source: Client, targets: dict[str, Client], submitter: Submitter
) -> None:
    driver = submitter.submit("ends", 2, 100, spark.template(submitter.where))
    await _executors(fleet, source, driver, 2)
    await source.delete(kinds.PODS, driver, "default")
    for client in (source, *targets.values()):
        await kit.until_gone(client, kinds.PODS, "default", label_selector="spark-role")


async def test_executors_wait_for_room_beside_their_driver(
    fleet: Fleet, source: Client, targets: dict[str, Client], submitter: Submitter
) -> None:
    executor = spark.template(submitter.where, resources={"limits": {SLOT: "1"}})
    driver = submitter.submit("waits", 2, 2, executor)
    running = await members.until_running(source, DRIVERS, 1)
    target = members.target_of(running)
    other = OTHER[target]
    await offer(source, targets[other], other, 2)

    def says_why(pods: dict[str, Object]) -> bool:
        said = [objects.condition(pod, "PodScheduled") or {} for pod in pods.values()]
        wanted = (f"Insufficient {SLOT}", f"{other}: the setting keepTogether keeps the pods")
        return len(said) == 2 and all(
            all(words in condition.get("message", "") for words in wanted) for condition in said
        )

    await kit.until(source, kinds.PODS, says_why, namespace="default", label_selector=EXECUTORS)
    await offer(source, targets[target], target, 2)
    await _executors(fleet, source, driver, 2)
    await _until_ended(source, driver)
    for name in members.TARGETS.values():
        await offer(source, targets[name], name, 0)


async def test_an_application_of_the_operator_completes(
    source: Client, submitter: Submitter, operators: Callable[..., None]
) -> None:
    operators(installation.spark_operator(submitter))
    made = spark.template(submitter.where)
    role = {"cores": 1, "coreRequest": "10m", "memory": "512m", "template": made}
    role["annotations"] = {keys.ELECT: ""}
    body = {
        "metadata": {"name": "count"},
        "spec": {
            "type": "Python",
            "mode": "cluster",
            "sparkVersion": installed.VERSION,
            "image": "busybox",
            "mainApplicationFile": spark.APPLICATION,
            "arguments": ["2"],
            "restartPolicy": {"type": "Never"},
            "sparkConf": spark.MASTER,
            "driver": {**role, "serviceAccount": spark.ACCOUNT},
            "executor": {**role, "instances": 2},
        },
    }
    await source.create(APPLICATIONS, body, "default")
    members.target_of(await members.until_running(source, "spark-role", 3))

    def is_complete(application: Object) -> bool:
        state = objects.status(application).get("applicationState") or {}
        assert state.get("state") != "FAILED", state
        return state.get("state") == "COMPLETED"

    await kit.until_one(source, APPLICATIONS, "count", "default", is_complete)
    await source.delete(APPLICATIONS, "count", "default")
    await kit.until_gone(source, kinds.PODS, "default", label_selector="spark-role")
