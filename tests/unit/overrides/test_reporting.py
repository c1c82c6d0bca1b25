"""Conditions of override policies, and how often they are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.unit.overrides.making import patch, policy
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.events import EventRecorder
from vnode.overrides.overrides import PolicyOverrides
from vnode.overrides.reporting import PolicyReporter

pytestmark = pytest.mark.looptime
GOOD = policy({"labels": {"a": "1"}})


class Reporting:
    """A reporter at work on one policy."""

    def __init__(self, clock: Clock, obj: Object) -> None:
        self.server = APIServer("c1", clock)
        self.kind = kinds.OVERRIDE_POLICIES
        if not objects.namespace(obj):
            self.kind = kinds.CLUSTER_OVERRIDE_POLICIES

        self.name, self.namespace = objects.name(obj), objects.namespace(obj)
        self.server.add(self.kind, obj)
        client = self.server.client()
        self.overrides = PolicyOverrides(
            client, labels=lambda _n: None, references=lambda _p: (), key=lambda: b""
        )
        self.events = EventRecorder(client, "vnode", clock)
        self.reporter = PolicyReporter(client, self.overrides, self.events, clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with links.following(*self.overrides.informers):
            tasks = [asyncio.create_task(each.run()) for each in (self.reporter, self.events)]
            try:
                await asyncio.sleep(1)
                yield
                assert not any(task.done() for task in tasks), tasks
            finally:
                for task in tasks:
                    task.cancel()

                await asyncio.wait(tasks)

    def condition(self, type_: str) -> tuple[str, str, str]:
        obj = self.server.find(self.kind, self.name, self.namespace) or {}
        found = objects.condition(obj, type_) or {}
        return found["status"], found["reason"], found["message"]

    @property
    def writes(self) -> int:
        return self.server.count("patch", self.kind)

    def events_about(self) -> list[tuple[str, str]]:
        return [(e["reason"], e["involvedObject"]["kind"]) for e in self.server.all(kinds.EVENTS)]

    def fail(self, uid: str, message: str = "it fails") -> None:
        pod = {"metadata": {"name": uid, "namespace": "ns", "uid": uid}}
        self.overrides.failures.add("ns/mirror", pod, "gpu", message)


async def test_a_good_policy_is_accepted_by_one_write_and_no_event(clock: Clock) -> None:
    for obj in (GOOD, policy({"labels": {"a": "1"}}, namespace="")):
        reporting = Reporting(clock, obj)
        async with reporting.running():
            assert reporting.condition("Accepted")[:2] == ("True", "Valid")
            assert reporting.condition("Applicable")[:2] == ("True", "NoFailure")
            await asyncio.sleep(60)
            assert (reporting.writes, reporting.events_about()) == (1, [])


async def test_a_bad_policy_says_what_to_do_and_is_accepted_once_it_is_mended(
    clock: Clock,
) -> None:
    reporting = Reporting(clock, policy(patch("add", "/spec/nodeName", value="x")))
    async with reporting.running():
        status, reason, message = reporting.condition("Accepted")
        assert (status, reason) == ("False", "Invalid")
        assert message.startswith("spec.rules[0]: patches[0]: spec.nodeName cannot be overridden")
        assert reporting.events_about() == [("Invalid", "OverridePolicy")]

        def mend(obj: Object) -> None:
            obj["spec"] = {**obj["spec"], "rules": [{"labels": {"a": "1"}}]}

        reporting.server.change(reporting.kind, "mirror", "ns", mend)
        await asyncio.sleep(1)
        assert reporting.condition("Accepted")[0] == "True"
        assert ("Valid", "OverridePolicy") in reporting.events_about()


async def test_a_failure_is_a_condition_until_the_pod_is_gone(clock: Clock) -> None:
    reporting = Reporting(clock, GOOD)
    async with reporting.running():
        reporting.fail("a")
        await asyncio.sleep(1)
        assert reporting.condition("Applicable") == ("False", "PatchFailed", "it fails")
        assert reporting.condition("Accepted")[0] == "True"
        reporting.overrides.failures.on_pod({"metadata": {"uid": "a"}}, None)
        await asyncio.sleep(1)
        assert reporting.condition("Applicable")[:2] == ("True", "NoFailure")


async def test_pods_that_fail_without_end_are_not_written_without_end(clock: Clock) -> None:
    reporting = Reporting(clock, GOOD)
    async with reporting.running():
        for number in range(600):
            reporting.fail(f"pod-{number}", f"failure {number}")
            reporting.overrides.failures.on_pod({"metadata": {"uid": f"pod-{number - 1}"}}, None)
            await asyncio.sleep(0.1)

        assert reporting.writes < 25
        await asyncio.sleep(30)
        assert reporting.condition("Applicable")[2] == "failure 599"
