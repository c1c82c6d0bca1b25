"""Which rules are chosen for a pod, and what of a chaperon is believed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.held_cluster import HeldCluster
from tests.unit.overrides.making import a_pod, patch, policy
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Unreachable
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.overrides.overrides import PolicyOverrides, RuleOverride
from vnode.runtime.link import Link

pytestmark = pytest.mark.looptime
POD: Object = {"metadata": {"name": "web", "namespace": "ns", "uid": "u", "labels": {"app": "web"}}}
REFERENCE = ("secrets", "extra")
SEEN = 1.0  # seconds of simulated time, in which informers see a change


class Chooser:
    """Overrides of a source with one target, `gpu`, whose virtual node has labels."""

    def __init__(self, clock: Clock, *policies: Object) -> None:
        self.server = APIServer("c1", clock)
        self.labels: dict[str, dict[str, str]] = {}
        self.key = bytes(32)
        self.link = self.link_to("gpu", clock)
        self.labels[self.link.node_name] = {"zone": "a"}
        self.overrides = PolicyOverrides(
            self.server.client(),
            labels=self.labels.get,
            references=lambda pod: [REFERENCE] if "volumes" in objects.spec(pod) else [],
            key=lambda: self.key,
        )
        for each in policies:
            self.add(each)

    def link_to(self, name: str, clock: Clock) -> Link:
        target = TargetKey("ns", name)
        return links.link_to(APIServer(name, clock), target, Identity("c1", "us"), clock)

    def add(self, obj: Object) -> None:
        kinds_ = {k.kind: k for k in (kinds.OVERRIDE_POLICIES, kinds.CLUSTER_OVERRIDE_POLICIES)}
        self.server.add(kinds_[obj["kind"]], obj)

    @asynccontextmanager
    async def known(self) -> AsyncIterator[PolicyOverrides]:
        """Run the informers of the policies; inside, the policies are known."""
        async with links.following(*self.overrides.informers):
            yield self.overrides

    def override(self, pod: Object = POD) -> RuleOverride:
        found = self.overrides.choose(pod, self.link)
        assert found is not None
        return found

    def notes(self, pod: Object = POD) -> Any:
        """Return a pod's annotations after the rules for pods with the labels of `pod`."""
        return objects.annotations(self.override(pod).apply(a_pod()))


def note(text: str, *, clusters: Object | None = None) -> Object:
    """Append a word to an annotation, by a test of what it was."""
    return {"annotations": {text: "", "last": text}, **({"clusters": clusters} if clusters else {})}


async def test_without_policies_nothing_is_chosen_nor_asked(clock: Clock) -> None:
    chooser = Chooser(clock)
    async with chooser.known() as overrides:
        asked = len(chooser.server.requests)
        assert overrides.choose(POD, chooser.link) is None
        assert len(chooser.server.requests) == asked


async def test_before_the_policies_are_known_no_pod_is_sent(clock: Clock) -> None:
    chooser = Chooser(clock)
    with pytest.raises(Unreachable, match="not known yet"):
        chooser.overrides.choose(POD, chooser.link)


async def test_a_cluster_without_the_crds_has_no_policies(clock: Clock) -> None:
    chooser = Chooser(clock)
    for informer in chooser.overrides.informers:
        informer.answered.set()  # that there is no such kind

    assert chooser.overrides.choose(POD, chooser.link) is None


async def test_no_pod_is_sent_while_the_policies_of_its_namespace_may_not_be_read(
    clock: Clock,
) -> None:
    cluster = HeldCluster(clock, "ns", "more")
    cluster.open_("more")
    cluster.close("ns")
    chooser = Chooser(clock)
    held = PolicyOverrides(
        cluster.client, labels=dict[str, Any]().get, references=lambda _pod: [], key=bytes
    )
    async with links.following(*held.informers):
        with pytest.raises(Unreachable, match="not known yet"):
            held.choose(POD, chooser.link)

        cluster.open_("ns")
        await asyncio.sleep(120)
        assert held.choose(POD, chooser.link) is None


async def test_the_last_word_has_the_highest_priority_of_the_namespace(clock: Clock) -> None:
    chooser = Chooser(
        clock,
        policy(note("a"), name="a", priority=1),
        policy(note("b"), name="b"),
        policy(note("other"), namespace="elsewhere"),
        policy(note("c"), name="c", namespace="", priority=9),
        policy(note("d"), name="d", selector={"matchLabels": {"app": "db"}}),
        policy(note("e", clusters={"names": ["cpu"]}), name="e", priority=7),
        policy(note("f", clusters={"selector": {"matchLabels": {"zone": "b"}}}), name="f"),
    )
    async with chooser.known():
        assert chooser.notes() == {"note": "1", "a": "", "b": "", "c": "", "last": "a"}


async def test_a_policy_of_the_cluster_is_joined_by_no_label_from_another_namespace(
    clock: Clock,
) -> None:
    """A rule may give what no admission of the source would let a tenant have."""
    selector = {"matchLabels": {"app": "web"}}
    privileged = patch("add", "/spec/hostPID", value=True)
    chooser = Chooser(
        clock,
        policy(privileged, namespace="", selector=selector, namespaces=["infra", "more"]),
        policy({"image": "x"}, name="bad", namespace="", namespaces=["infra"]),
    )
    theirs = {**POD, "metadata": {**POD["metadata"], "namespace": "infra"}}
    async with chooser.known() as overrides:
        assert overrides.choose(POD, chooser.link) is None
        with pytest.raises(ConfigError, match="clusteroverridepolicy/bad is not accepted"):
            overrides.choose(theirs, chooser.link)

        theirs["metadata"]["namespace"] = "more"
        assert objects.spec(chooser.override(theirs).apply(a_pod()))["hostPID"] is True


async def test_a_changed_policy_counts_from_then_on_and_a_status_is_no_change(
    clock: Clock,
) -> None:
    chooser = Chooser(clock, policy(note("a")))
    changed: list[str] = []
    async with chooser.known() as overrides:
        overrides.subscribe(changed.append)

        def status(obj: Object) -> None:
            obj["status"] = {"conditions": []}

        def rules(obj: Object) -> None:
            obj["spec"] = {**obj["spec"], "rules": [note("b")]}

        chooser.server.change(kinds.OVERRIDE_POLICIES, "mirror", "ns", status)
        await asyncio.sleep(SEEN)
        chooser.server.change(kinds.OVERRIDE_POLICIES, "mirror", "ns", rules)
        await asyncio.sleep(SEEN)
        assert chooser.notes()["last"] == "b"
        assert changed == ["ns/mirror"]
        chooser.server.remove(kinds.OVERRIDE_POLICIES, "mirror", "ns")
        await asyncio.sleep(SEEN)
        assert len(changed) == 2
        assert overrides.choose(POD, chooser.link) is None


async def test_a_bad_rule_keeps_pods_from_the_targets_that_it_is_for(clock: Clock) -> None:
    bad = {"clusters": {"names": ["cpu"]}, "image": "x"}
    chooser = Chooser(clock, policy(note("a"), bad))
    async with chooser.known() as overrides:
        assert chooser.notes()["last"] == "a"
        with pytest.raises(ConfigError, match=r"overridepolicy/ns/mirror is not accepted.*rules"):
            overrides.choose(POD, chooser.link_to("cpu", clock))


async def test_rules_by_labels_wait_for_the_virtual_node(clock: Clock) -> None:
    chooser = Chooser(clock, policy(note("a", clusters={"selector": {}})))
    async with chooser.known() as overrides:
        assert chooser.notes()["last"] == "a"
        chooser.labels.clear()
        with pytest.raises(Unreachable, match="virtual node"):
            overrides.choose(POD, chooser.link)


async def test_a_failing_patch_names_policy_and_rule_and_is_remembered(clock: Clock) -> None:
    chooser = Chooser(clock, policy(note("a"), patch("remove", "/spec/hostname")))
    async with chooser.known() as overrides:
        changed: list[str] = []
        overrides.failures.subscribe(changed.append)
        for _ in range(3):
            with pytest.raises(ConfigError, match=r"^overridepolicy/ns/mirror, rules\[1\]: patch"):
                chooser.override().apply(a_pod())

        failure = overrides.failures.first("ns/mirror")
        assert failure.startswith("pod/ns/web is not sent to target ns/gpu: rules[1]: patches[0]")
        assert changed == ["ns/mirror"]
        chooser.override().apply(a_pod(hostname="x"))
        assert overrides.failures.first("ns/mirror") == ""
        assert len(changed) == 2


async def test_what_fails_is_forgotten_with_the_pod_and_with_the_policy(clock: Clock) -> None:
    chooser = Chooser(clock, policy(patch("remove", "/spec/hostname")))
    async with chooser.known() as overrides:
        failures = overrides.failures
        bound = {**POD, "spec": {"nodeName": "other"}}
        for end in (
            lambda: failures.on_pod(POD, None),
            lambda: failures.on_pod(POD, bound),
            lambda: failures.forget("ns/mirror"),
        ):
            with pytest.raises(ConfigError):
                chooser.override().apply(a_pod())

            failures.on_pod(None, POD)
            assert failures.first("ns/mirror")
            end()
            assert not failures.first("ns/mirror")


async def test_too_many_rules_for_one_pod_are_refused(clock: Clock) -> None:
    long = {"annotations": {"a": "x" * 20_000}}
    chooser = Chooser(clock, policy(long), policy(long, name="b"))
    async with chooser.known() as overrides:
        with pytest.raises(ConfigError, match="fewer or shorter rules"):
            overrides.choose(POD, chooser.link)


# --- records


def chaperon(override: RuleOverride) -> Object:
    before = a_pod()
    record = override.record(before, override.apply(before))
    return {"metadata": {"annotations": {**record, keys.OVERRIDDEN: "{}"}}}


ADDS = patch("add", "/spec/volumes/-", value={"name": "v"})


async def test_a_chaperon_remembers_its_rules_whatever_becomes_of_the_policy(clock: Clock) -> None:
    chooser = Chooser(clock, policy(note("a"), ADDS))
    async with chooser.known() as overrides:
        made = chaperon(chooser.override())
        chooser.server.remove(kinds.OVERRIDE_POLICIES, "mirror", "ns")
        await asyncio.sleep(SEEN)
        assert overrides.choose(POD, chooser.link) is None
        again = overrides.recorded(POD, made, chooser.link)
        assert again is not None
        assert objects.annotations(again.apply(a_pod()))["last"] == "a"
        assert list(overrides.introduced(POD, made, chooser.link)) == [REFERENCE]
        assert overrides.recorded(POD, {}, chooser.link) is None
        assert list(overrides.introduced(POD, {}, chooser.link)) == []


async def test_a_record_that_was_forged_lost_or_made_for_another_is_not_believed(
    clock: Clock,
) -> None:
    chooser = Chooser(clock, policy(note("a"), ADDS))
    async with chooser.known() as overrides:
        made = chaperon(chooser.override())
        annotations = objects.annotations(made)
        text = annotations[keys.OVERRIDES]
        forged = [
            {**annotations, keys.OVERRIDES: text.replace("extra", "admin")},
            {**annotations, keys.OVERRIDES_SIGNATURE: "\ud800"},
            {keys.OVERRIDDEN: "{}"},
            {keys.OVERRIDES: text},
        ]
        for each in forged:
            bad = {"metadata": {"annotations": each}}
            assert list(overrides.introduced(POD, bad, chooser.link)) == []
            with pytest.raises(ConfigError, match="lost or forged"):
                overrides.recorded(POD, bad, chooser.link)

        others = [
            (POD, chooser.link_to("cpu", clock)),
            ({"metadata": {**POD["metadata"], "uid": "v"}}, chooser.link),
        ]
        for pod, link in others:
            assert list(overrides.introduced(pod, made, link)) == []

        chooser.key = b"1" * 32
        assert list(overrides.introduced(POD, made, chooser.link)) == []
