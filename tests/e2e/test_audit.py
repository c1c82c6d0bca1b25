"""The audit logs of agents say which user's objects made them do what, and quote no secret."""

from __future__ import annotations

import re

from tests import audit_lines, kit
from tests.audit_lines import AuditLine
from tests.e2e.places import Policy, Rooms, amend, deploy, policy, rooms, until_there
from tests.e2e.test_following import secret
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.kube.client import Client

__all__ = ["policy", "rooms"]

PASSWORD = "correct-horse-battery-staple"


async def test_who_made_the_agents_run_a_pod_and_open_a_shell_in_it(
    fleet: Fleet, source: Client, c2: Client
) -> None:
    await source.create(kinds.SECRETS, secret("audited", password=PASSWORD), "default")
    volumes = [{"name": "s", "secret": {"secretName": "audited"}}]
    await source.create(kinds.PODS, kit.pod_in("c2", "audited", volumes=volumes), "default")
    pod = await kit.until_running(source, "audited")
    ((_, chaperon),) = (await kit.until(c2, kinds.POD_CHAPERONS, bool, namespace="default")).items()
    fleet.kubectl("c1", "exec", "audited", "--", "sh", "-c", f"echo {PASSWORD}")
    fleet.kubectl("c1", "logs", "audited")

    async def told(cluster: str, verb: str, resource: str, uid: str) -> AuditLine:
        """Return the line of something that was done on behalf of the object of that UID."""
        wanted_resource, _, subresource = resource.partition("/")

        def is_wanted(line: AuditLine) -> bool:
            obj = line.get("object", {})
            return (
                (line.get("verb"), obj.get("resource"), obj.get("subresource", ""))
                == (verb, wanted_resource, subresource)
            ) and uid in (line["onBehalfOf"].get("uid"), obj.get("uid"))

        return await audit_lines.until_written(fleet, cluster, is_wanted)

    named = {"kind": "Pod", "namespace": "default", "name": "audited"}
    of_pod = {**named, "uid": objects.uid(pod)}
    made = await told("c1", "create", "podchaperons", objects.uid(pod))
    assert made["onBehalfOf"] == of_pod
    assert made["cluster"] == "default/c2"
    assert made["object"]["uid"] == objects.uid(chaperon)
    for verb, resource in (
        ("create", "secrets"),
        ("create", "pods/binding"),
    ):
        assert (await told("c1", verb, resource, objects.uid(pod)))["onBehalfOf"] == of_pod

    opened = await told("c1", "open", "pods/exec", objects.uid(pod))
    assert opened["container"] == "main"
    assert opened["commandLength"] == len(f"sh-cecho {PASSWORD}")
    assert opened["onBehalfOf"]["kind"] == "User"
    assert (await told("c1", "open", "pods/log", objects.uid(pod)))["container"] == "main"

    delegate = await told("c2", "create", "pods", objects.uid(chaperon))
    assert delegate["onBehalfOf"]["cluster"] == "c1"
    assert any(source.endswith("/c1") for source in delegate["onBehalfOf"]["sources"])
    await told("c2", "create", "pods/binding", objects.uid(chaperon))
    await source.delete(kinds.PODS, "audited", "default")
    await kit.until_gone(source, kinds.PODS, "default")
    await told("c1", "delete", "podchaperons", objects.uid(pod))
    await told("c2", "delete", "pods", objects.uid(chaperon))
    for log in fleet.folder.glob("*/agent.log"):
        assert PASSWORD not in log.read_text()

    await source.delete(kinds.SECRETS, "audited", "default")


async def test_a_policy_that_moves_a_pod_is_named_with_its_reason(
    fleet: Fleet, source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(50, 50)
    await policy({"cluster": "c2", "weight": 1}, {"cluster": "c3", "weight": 1})
    await deploy(source, 2)
    await until_there(source, c2=1, c3=1)
    await amend(source, drain=[{"cluster": "c2"}])
    await until_there(source, c3=2)
    evicted = await audit_lines.until_written(
        fleet, "c1", lambda line: line.get("object", {}).get("subresource") == "eviction"
    )
    behalf = evicted["onBehalfOf"]
    assert (behalf["kind"], behalf["name"]) == ("PlacementPolicy", "web")
    assert behalf["uid"]
    # Pods that are about to end are counted until they have, so that the numbers vary.
    assert re.search(r"\(drain\): \d of \d run in c2", behalf["reason"])


def test_nothing_was_done_on_behalf_of_nobody_known(fleet: Fleet) -> None:
    """What all tests before have made the agents do; the fixture of the fleet looks once more."""
    found = audit_lines.written(fleet)
    assert found
    assert not list(filter(audit_lines.is_of_nobody, found))
