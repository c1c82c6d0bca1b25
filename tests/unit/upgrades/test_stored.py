"""What agents of the version before have stored is read as they meant it, and is not written anew.

stored-before.json has objects of a source and a target between which agents of that version
worked, as `tests/upgrades/stored.py` has found them. A difference that today's agent sees
between a pod and its delegate it would carry out at once, on all pods, after an upgrade.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Final

import pytest

from vnode.api import keys, objects, target_key
from vnode.api.identity import Identity, is_chaperon_of
from vnode.api.objects import Object, Objects
from vnode.api.saved_manifest import SavedManifests
from vnode.following import copies
from vnode.nodes import virtual
from vnode.pods import changes, delegate, delegate_report, event_record, overriding
from vnode.pods.source import feedback, proxy_state

STORED: Final = json.loads(Path(__file__).with_name("stored-before.json").read_text())
SOURCE: Final[Objects] = STORED["source"]
TARGET: Final[Objects] = STORED["target"]
IDENTITY: Final = Identity("c1", STORED["uid"])
C2: Final = "admiralty-default-c2"


def of_kind(objs: Objects, kind: str) -> Objects:
    return [obj for obj in objs if obj["kind"] == kind]


def named(objs: Objects, kind: str, name: str) -> Object:
    [found] = [obj for obj in of_kind(objs, kind) if objects.name(obj) == name]
    return found


def chaperon_of(proxy: Object) -> Object:
    of = objects.uid(proxy)
    found = of_kind(TARGET, "PodChaperon")
    [chaperon] = [each for each in found if objects.labels(each)[keys.PARENT_UID] == of]
    return chaperon


PROXIES: Final = [pod for pod in of_kind(SOURCE, "Pod") if objects.node_name(pod) == C2]
proxies = pytest.mark.parametrize("proxy", PROXIES, ids=objects.name)


def test_there_are_pods_of_several_sorts():
    assert {objects.labels(proxy)["app"] for proxy in PROXIES} == {"bare", "db", "planned", "web"}
    [summary] = of_kind(TARGET, "ClusterSummary")
    assert objects.annotations(summary)[keys.AGENT_VERSION] == STORED["version"]


@proxies
def test_a_chaperon_is_that_of_its_pod_and_no_loser(proxy: Object):
    chaperon = chaperon_of(proxy)
    assert is_chaperon_of(chaperon, objects.key(proxy), objects.uid(proxy))
    assert IDENTITY.surely_owns(chaperon)
    assert not proxy_state.is_loser(chaperon, proxy, C2)
    assert keys.IS_ALLOWED in objects.annotations(chaperon)
    assert not changes.problem(chaperon)


@proxies
def test_nothing_is_sent_to_a_pod_that_runs(proxy: Object):
    assert not changes.is_news(proxy, chaperon_of(proxy), IDENTITY)


@proxies
def test_nothing_comes_back_from_a_pod_that_runs(proxy: Object):
    chaperon = chaperon_of(proxy)
    assert feedback.annotations_patch(proxy, chaperon, two_way=True) == {}
    conditions = {"conditions", "observedGeneration"}
    patch = feedback.status_patch(proxy, chaperon)
    assert objects.status(patch).keys() <= conditions, patch


@proxies
def test_a_delegate_is_its_chaperons_and_reports_nothing_new(proxy: Object):
    chaperon = chaperon_of(proxy)
    pod = named(TARGET, "Pod", objects.name(chaperon))
    assert objects.controller_reference(pod)
    report = delegate_report.build(chaperon, pod, objects.status(chaperon).get(event_record.FIELD))
    assert (report.metadata, report.status) == ({}, {})
    assert not changes.pending(chaperon, pod)
    assert delegate.lost_marks(chaperon, pod) == {}


@proxies
def test_the_saved_constraints_are_believed_and_read(proxy: Object):
    secret = named(SOURCE, "Secret", "vnode-manifest-key")
    key = base64.b64decode(secret["data"]["key"])
    manifests = SavedManifests(lambda: key)
    assert manifests.refusal(proxy) == ""
    saved = manifests.source_pod(proxy)
    assert objects.spec(saved)["schedulerName"] == "default-scheduler"
    assert keys.ELECT in objects.annotations(saved)


def test_what_policies_changed_is_known():
    web = next(proxy for proxy in PROXIES if objects.labels(proxy)["app"] == "web")
    chaperon = chaperon_of(web)
    [container] = objects.spec(chaperon)["containers"]
    assert container["image"] == "mirror.example/busybox:1"
    [undone] = objects.spec(overriding.undone(chaperon))["containers"]
    assert undone["image"] == "busybox:1"


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_a_copy_is_that_of_its_original_and_not_sent_again(kind: str):
    name = {"ConfigMap": "settings", "Secret": "password"}[kind]
    original, copy = named(SOURCE, kind, name), named(TARGET, kind, name)
    wanted = copies.content(original, IDENTITY)
    assert IDENTITY.made(copy)
    assert copies.digest(wanted) == copies.digest(copy)
    assert copies.marks(wanted) == copies.marks(copy)


def test_a_virtual_node_is_that_of_its_target_and_keeps_its_port():
    node = named(SOURCE, "Node", C2)
    target = target_key.of_node(node)
    assert target is not None
    assert (target.namespace, target.name) == ("default", "c2")
    assert virtual.tainted(node) is None
    assert (
        virtual.recorded_port(node) == node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    )
