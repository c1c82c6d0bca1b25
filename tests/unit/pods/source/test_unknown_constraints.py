"""Pods whose own constraints nobody knows run nowhere, and say why; all others run as ever."""

from __future__ import annotations

import asyncio
import base64
import copy
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests import admiralty_webhook, background
from tests.unit.pods.bound_pods import SPACE, BoundPodsEnvironment, is_allowed
from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import Target
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.saved_manifest import UNKNOWN, SavedManifests
from vnode.cli.migration import signing
from vnode.cli.remove.report import RemovalReport
from vnode.runtime import manifest_key

pytestmark = pytest.mark.looptime

KEY: Final = b"k" * 32
PROVIDER: Final = {keys.PROVIDER_LABEL: keys.PROVIDER}
MANIFESTS: Final = SavedManifests(lambda: KEY)
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
AFFINITY: Final = {
    "nodeAffinity": {
        REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
        }
    }
}
SPREAD: Final = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
OWN: Final[dict[str, Object]] = {
    "nodeSelector": {"nodeSelector": {"nope": "x"}},
    "affinity": {"affinity": AFFINITY},
    "spread": {"topologySpreadConstraints": SPREAD},
    "tolerations": {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    "grace": {"terminationGracePeriodSeconds": 120},
    "none": {},
}
"""What users wrote that Admiralty's webhook takes off."""


def written(spec: Object, **annotations: str) -> Object:
    """Return a pod as its user wrote it, elected."""
    containers = [{"name": "main", "image": "nginx"}]
    metadata = {"name": "p", "namespace": "default", "annotations": {keys.ELECT: "", **annotations}}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def of_admiralty(spec: Object, **annotations: str) -> Object:
    return admiralty_webhook.admitted(written(spec, **annotations), [keys.PREFIX + "default-c2"])


def store(source: SourceCluster, pod: Object) -> None:
    """Store a pod that waits, and virtual nodes by whose labels a webhook has it choose."""
    for target in source.targets:
        node = {"metadata": {"name": target.node, "labels": PROVIDER}, "spec": {}}
        source.server.add(kinds.NODES, node)

    metadata = {**pod["metadata"], "uid": "p"}
    source.server.add(kinds.PODS, {**pod, "metadata": metadata, "status": {"phase": "Pending"}})


async def assert_waits(source: SourceCluster, target: Target, why: str = UNKNOWN) -> None:
    await source.until_said("p", why)
    await asyncio.sleep(300)
    assert source.node_of("p") == ""
    assert target.server.count("create", kinds.POD_CHAPERONS) == 0
    condition = objects.condition(source.pod("p"), "PodScheduled") or {}
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    [event] = [e for e in source.server.all(kinds.EVENTS) if e["reason"] == "FailedScheduling"]
    assert why in event["message"]


def forged(pod: Object) -> None:
    pod["metadata"]["annotations"][keys.MANIFEST_SIGNATURE] = "AAAA"


def without_manifest(pod: Object) -> None:
    del pod["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST]


def by_hand(pod: Object) -> None:
    """Leave what somebody copies who knows the form from its documentation only."""
    del pod["metadata"]["labels"]
    del pod["metadata"]["finalizers"]
    pod["spec"]["tolerations"] = [{"operator": "Exists"}]


def for_another_provider(pod: Object) -> None:
    pod["spec"]["nodeSelector"] = {keys.PROVIDER_LABEL: "mine"}


def without_selector(pod: Object) -> None:
    del pod["spec"]["nodeSelector"]


FORMS: Final[tuple[Callable[[Object], None], ...]] = (
    lambda _pod: None,
    forged,
    without_manifest,
    by_hand,
    for_another_provider,
    without_selector,
)


@pytest.mark.parametrize("own", OWN)
async def test_a_pod_that_admiralty_admitted_waits_and_says_why(clock: Clock, own: str) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target, manifests=MANIFESTS)
    store(source, of_admiralty(OWN[own]))
    async with source.running(), background.running(source.events.run()):
        await assert_waits(source, target, "run vnode migrate if Admiralty has admitted the pod")


@pytest.mark.parametrize(
    "annotations",
    [
        {keys.NO_RESERVATION: ""},
        {keys.USE_SPEC_CONSTRAINTS: ""},
        {keys.PROXY_CONSTRAINTS: "nodeSelector: {virtual-kubelet.io/provider: mine}"},
    ],
    ids=["no-reservation", "from-spec", "by-annotation"],
)
async def test_so_does_one_whose_annotations_ask_for_something_else(
    clock: Clock, annotations: dict[str, str]
) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target, manifests=MANIFESTS)
    spec = {"nodeSelector": {"nope": "x"}, "schedulerName": "mine"}
    store(source, of_admiralty(spec, **annotations))
    async with source.running(), background.running(source.events.run()):
        await assert_waits(source, target)
        assert source.bindings == []


@pytest.mark.parametrize("change", FORMS)
async def test_so_does_one_that_was_made_in_that_form_by_hand(
    clock: Clock, change: Callable[[Object], None]
) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target, manifests=MANIFESTS)
    pod = of_admiralty(OWN["nodeSelector"])
    change(pod)
    store(source, pod)
    async with source.running(), background.running(source.events.run()):
        await assert_waits(source, target)


@pytest.mark.parametrize("answer", ["reserved", "allowed"])
async def test_a_candidate_that_admiralty_left_is_not_taken_for_the_pod(
    clock: Clock, answer: str
) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target, manifests=MANIFESTS)
    store(source, of_admiralty(OWN["nodeSelector"]))
    labels = {keys.PARENT_UID: "p", keys.PARENT_CLUSTER_NAME: "c1"}
    annotations = {
        keys.PARENT_NAMESPACE: "default",
        keys.PARENT_NAME: "p",
        keys.IS_RESERVED: "true",
        **({keys.IS_ALLOWED: "true"} if answer == "allowed" else {}),
    }
    metadata = {"name": "p-x2x4z", "namespace": "default"}
    target.server.add(
        kinds.POD_CHAPERONS,
        {"metadata": {**metadata, "labels": labels, "annotations": annotations}, "spec": {}},
    )
    async with source.running(), background.running(source.events.run()):
        await assert_waits(source, target)
        assert target.server.all(kinds.POD_CHAPERONS) == []


def plain(pod: Object) -> None:
    """Leave a pod that names the scheduler itself, with its own constraints."""
    pod["spec"]["schedulerName"] = keys.PROXY_SCHEDULER


def selecting(pod: Object) -> None:
    """Have it name virtual nodes, too, as for a scheduler of others."""
    plain(pod)
    pod["spec"]["nodeSelector"] = PROVIDER
    pod["spec"]["tolerations"] = [{"key": keys.PROVIDER_LABEL, "operator": "Exists"}]


def held_before(pod: Object) -> None:
    """Give it the label that a binding gives which then failed."""
    selecting(pod)
    pod["metadata"]["labels"] = {keys.HAS_FINALIZER: "true"}


def with_a_note(pod: Object) -> None:
    """Have it carry somebody's manifest with a false signature, but its own constraints."""
    plain(pod)
    text, false = "spec: {nodeSelector: {chosen-by: a-forger}}", "AAAA"
    pod["metadata"]["annotations"] |= {
        keys.SOURCE_POD_MANIFEST: text,
        keys.MANIFEST_SIGNATURE: false,
    }


def copied_to_debug(pod: Object) -> None:
    """Leave what `kubectl debug --copy-to` takes over of a proxy."""
    pod.update(of_admiralty({}))
    for field in ("labels", "annotations", "finalizers"):
        del pod["metadata"][field]


@pytest.mark.parametrize("change", [plain, selecting, held_before, with_a_note, copied_to_debug])
async def test_a_pod_that_says_itself_where_it_may_run_is_not_held(
    clock: Clock, change: Callable[[Object], None]
) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target, manifests=MANIFESTS)
    pod = written({"terminationGracePeriodSeconds": 7})
    change(pod)
    store(source, pod)
    async with source.running():
        await source.until_bound("p")
        assert "chosen-by" not in (objects.spec(target.candidate("p")).get("nodeSelector") or {})


@pytest.mark.parametrize("own", OWN)
async def test_once_it_is_signed_it_runs_as_its_user_wrote_it(clock: Clock, own: str) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target, manifests=MANIFESTS)
    store(source, of_admiralty(OWN[own]))
    await configure(source)
    async with source.running():
        await source.until_said("p", UNKNOWN)
        report = RemovalReport(say=lambda _text: None)
        await signing.sign(source.server.client(), "vnode", report)
        assert report.left == []
        await source.until_bound("p")
        spec = objects.spec(target.candidate("p"))
        assert {field: spec.get(field) for field in OWN[own]} == OWN[own]
        assert spec["schedulerName"] == keys.CANDIDATE_SCHEDULER


async def test_where_unsigned_manifests_are_trusted_it_runs_as_its_user_wrote_it(
    clock: Clock,
) -> None:
    target = Target("c2", clock)
    trusting = SavedManifests(lambda: KEY, trust_unsigned=True)
    source = SourceCluster(clock, target, manifests=trusting)
    store(source, of_admiralty(OWN["nodeSelector"]))
    async with source.running():
        await source.until_bound("p")
        assert objects.spec(target.candidate("p"))["nodeSelector"] == {"nope": "x"}


async def test_a_key_that_was_replaced_holds_the_pods_that_it_had_signed(clock: Clock) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target, manifests=SavedManifests(lambda: b"n" * 32))
    pod = of_admiralty(OWN["nodeSelector"])
    annotations = pod["metadata"]["annotations"]
    text = annotations[keys.SOURCE_POD_MANIFEST]
    annotations[keys.MANIFEST_SIGNATURE] = MANIFESTS.signature(pod, "default", text)
    store(source, pod)
    async with source.running(), background.running(source.events.run()):
        await assert_waits(source, target, "by a key that was replaced")


async def test_one_that_others_bound_to_a_node_is_refused_by_an_event(clock: Clock) -> None:
    env = BoundPodsEnvironment(clock, manifests=MANIFESTS)
    pod = of_admiralty({"nodeSelector": {"nope": "x"}}, **{keys.NO_RESERVATION: ""})
    fields: dict[str, Any] = {field: pod["spec"][field] for field in ("nodeSelector",)}
    async with env.running():
        env.add(metadata={"annotations": pod["metadata"]["annotations"]}, spec=fields)
        await asyncio.sleep(1)
        assert UNKNOWN in "".join(env.event_messages("DelegateRefused"))
        assert env.target.writes == []


async def test_a_running_pod_of_admiraltys_is_changed_as_ever(clock: Clock) -> None:
    env = BoundPodsEnvironment(clock, manifests=MANIFESTS)
    pod = of_admiralty({"nodeSelector": {"disk": "ssd"}})
    async with env.running():
        made = env.add(metadata={"annotations": pod["metadata"]["annotations"]})
        env.target.add(made)
        await asyncio.sleep(1)
        env.change(lambda each: each["metadata"].setdefault("labels", {}).update(team="blue"))
        await asyncio.sleep(1)
        assert is_allowed(env.target.chaperon())
        labels = objects.labels(env.target.chaperon() or {})
        assert labels[keys.PREFIX + "team"] == "blue"
        assert objects.namespace(made) == SPACE


# --- what `vnode migrate` signs


async def configure(source: SourceCluster) -> None:
    """Install vnode: its webhook, after what is there, and the agents' key."""
    await asyncio.sleep(1)
    source.server.add(kinds.MUTATING_WEBHOOKS, {"metadata": {"name": "vnode"}})
    secret = {"name": manifest_key.SECRET, "namespace": "vnode"}
    source.server.add(kinds.NAMESPACES, {"metadata": {"name": "vnode"}})
    encoded = base64.b64encode(KEY).decode()
    source.server.add(kinds.SECRETS, {"metadata": secret, "data": {"key": encoded}})


async def test_only_what_waited_before_vnode_was_installed_is_signed(clock: Clock) -> None:
    source = SourceCluster(clock, manifests=MANIFESTS)
    store(source, of_admiralty({}))
    await configure(source)
    await asyncio.sleep(2)
    later = of_admiralty(OWN["tolerations"])
    later["metadata"] |= {"name": "later", "uid": "later"}
    source.server.add(kinds.PODS, later)
    lines: list[str] = []
    report = RemovalReport(say=lines.append)
    await signing.sign(source.server.client(), "vnode", report)
    assert lines == ["signed what Admiralty has saved of 1 pod that wait"]
    [left] = report.left
    assert left.startswith("pod/default/later not signed: it is younger than vnode's webhook")
    assert MANIFESTS.refusal(source.pod("p")) == ""
    assert MANIFESTS.refusal(source.pod("later")) != ""


async def test_what_is_no_manifest_is_left_and_named(clock: Clock) -> None:
    source = SourceCluster(clock, manifests=MANIFESTS)
    pod = of_admiralty({})
    pod["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST] = "a: ["
    store(source, pod)
    await configure(source)
    report = RemovalReport(say=lambda _text: None)
    await signing.sign(source.server.client(), "vnode", report)
    [left] = report.left
    assert left.startswith("pod/default/p not signed: annotation")


async def test_pods_with_a_node_and_signed_ones_are_not_touched(clock: Clock) -> None:
    source = SourceCluster(clock, manifests=MANIFESTS)
    bound = of_admiralty({})
    bound["spec"]["nodeName"] = "admiralty-default-c2"
    store(source, bound)
    await configure(source)
    before = copy.deepcopy(source.pod("p"))
    await signing.sign(source.server.client(), "vnode", RemovalReport(say=lambda _text: None))
    assert source.pod("p") == before
