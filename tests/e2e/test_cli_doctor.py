"""`vnode doctor` finds nothing wrong with a fleet that works, and what is wrong with one that does
not."""

from __future__ import annotations

import json

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.outages import without_api_server
from tests.e2e.own_targets import home, shared  # noqa: F401 - fixtures
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import kinds
from vnode.api.objects import Object
from vnode.kube.client import Client


def findings(fleet: Fleet, *words: str, code: int) -> list[Object]:
    done = vnode("doctor", "--source", fleet.kubeconfig("c1"), "-o", "json", *words)
    assert done.code == code, done.out + done.err
    found: list[Object] = json.loads(done.out)["findings"]
    return found


def failures(found: list[Object]) -> dict[tuple[str, str], str]:
    bad = [entry for entry in found if entry["level"] == "fail"]
    assert all(entry["cure"] for entry in bad)
    return {(entry["place"], entry["check"]): entry["text"] for entry in bad}


def test_a_fleet_that_works_passes_every_check(fleet: Fleet) -> None:
    label = "multicluster-scheduler=enabled"
    fleet.kubectl("c1", "create", "namespace", "a-namespace-that-ends")
    fleet.kubectl("c1", "label", "namespace", "a-namespace-that-ends", label)
    fleet.kubectl("c1", "delete", "namespace", "a-namespace-that-ends", "--wait=false")
    found = findings(fleet, "--target", str(fleet.kubeconfig("c2")), code=0)
    checked = {entry["check"] for entry in found if entry["level"] == "ok"}
    assert {"reachable", "clock", "CRDs", "agent's rights", "agent", "webhook"} < checked
    assert {"admission", "credentials", "connection", "rights", "logs and exec"} < checked
    assert "source default/c1" in checked
    text = vnode("doctor", "--source", fleet.kubeconfig("c1")).out
    assert text.splitlines()[-1].endswith("could not be checked")


async def test_a_target_that_lets_nobody_in_is_found(
    fleet: Fleet,
    source: Client,
    home: str,  # noqa: F811
) -> None:
    token = own.with_token(fleet, "c2", "made-up")
    await own.put_secret(source, home, token)
    await own.put_target(source, home, own.named())
    await kit.until_one(source, kinds.TARGETS, "bad", home, own.is_because("Unauthorized"))
    bad = failures(findings(fleet, code=3))
    place = f"target {home}/bad"
    assert "Unauthorized" in bad[place, "connection"]
    assert (place, "credentials") not in bad


async def test_a_secret_that_is_no_kubeconfig_is_found(
    fleet: Fleet,
    source: Client,
    home: str,  # noqa: F811
) -> None:
    await own.put_secret(source, home, own.GARBAGE)
    await own.put_target(source, home, own.named())
    await kit.until_one(source, kinds.TARGETS, "bad", home, own.is_because("Invalid"))
    bad = failures(findings(fleet, code=3))
    assert "kubeconfig" in bad[f"target {home}/bad", "credentials"]


async def test_a_target_whose_agent_does_not_run_is_found(fleet: Fleet, c3: Client) -> None:
    fleet.run("stop", "c3", "agent")
    try:
        await kit.until_one(
            c3,
            kinds.LEASES,
            "vnode-agent",
            "vnode",
            lambda lease: not lease["spec"].get("holderIdentity"),
        )
        bad = failures(findings(fleet, "--target", str(fleet.kubeconfig("c3")), code=3))
        assert "does not run" in bad["target cluster kubeconfig-c3", "agent"]
    finally:
        fleet.run("start", "c3", "agent")


async def test_a_cluster_that_does_not_answer_is_one_failure(fleet: Fleet, source: Client) -> None:
    async with without_api_server(fleet, source, "c3"):
        bad = failures(findings(fleet, "--target", str(fleet.kubeconfig("c3")), code=3))
        assert ("target cluster kubeconfig-c3", "reachable") in bad
        assert "Unreachable" in bad["target default/c3", "connection"]
