"""Each rule of the fault harness finds what it is about, in snapshots that are made up."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults import followed_objects, jobs, rules
from tests.faults.plan import JobTerms, Thing, ThingKind, WantedWorkload, Wish, WorkloadKind
from tests.faults.snapshot import FleetSnapshot
from tests.unit.faults.delegated_pods import chaperon, delegate, proxy
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.following.references import Ref
from vnode.nodes import virtual

RUNS = WantedWorkload("web", WorkloadKind.DEPLOYMENT)
WAITS = WantedWorkload("never", WorkloadKind.POD, hopeless=True)
WORKS = WantedWorkload("work", WorkloadKind.JOB)
COUNTS = WantedWorkload(
    "count", WorkloadKind.JOB, 3, job=JobTerms(indexed=True, ignores_disruptions=True)
)


def keyed(*found: Object) -> dict[str, Object]:
    return {objects.key(obj): obj for obj in found}


@pytest.fixture
def well() -> FleetSnapshot:
    """Return a snapshot in which nothing is wrong."""
    node = names.virtual_node("default", "c2")
    web = proxy("web-1", "web", node=node)
    never = proxy("never", "never", phase="Pending")
    message = "0/1 targets take this pod: c2: it does not match"
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    never["status"] = {"phase": "Pending", "conditions": [condition]}
    own = chaperon(web)
    ready = {"type": "Ready", "status": "True"}
    registered = virtual.registration(TargetKey("default", "c2"))
    return FleetSnapshot(
        wish=Wish({w.name: w for w in (RUNS, WAITS, WORKS, COUNTS)}),
        proxies=keyed(web, never),
        jobs={
            "default/work": {"status": {"succeeded": 1}},
            "default/count": {"status": {"succeeded": 3, "completedIndexes": "0-2"}},
        },
        nodes={node: {**registered, "status": {"conditions": [ready]}}},
        targets={"default/c2": {"metadata": {"name": "c2", "namespace": "default"}}},
        chaperons={"c2": keyed(own), "c3": {}},
        delegates={"c2": keyed(delegate(own, web)), "c3": {}},
        survivors={"uid-web-1": "default/web-1"},
    )


def test_nothing_is_wrong_with_a_snapshot_that_is_well(well: FleetSnapshot) -> None:
    assert rules.violations(well) == []


def without_chaperons(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, chaperons={"c2": {}, "c3": {}})


def without_proxies(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, proxies={})


def without_delegates(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, delegates={"c2": {}, "c3": {}})


def with_a_chaperon_in_both(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, chaperons=dict.fromkeys(("c2", "c3"), well.chaperons["c2"]))


def with_an_end_that_does_not_come(well: FleetSnapshot) -> FleetSnapshot:
    changed = copy.deepcopy(well)
    changed.proxies["default/web-1"]["metadata"] |= {"deletionTimestamp": "now"}
    return changed


def with_a_chaperon_that_does_not_end(well: FleetSnapshot) -> FleetSnapshot:
    changed = copy.deepcopy(well)
    changed.chaperons["c2"]["default/web-1-x"]["metadata"] |= {"deletionTimestamp": "now"}
    return changed


MAP = Ref(kinds.CONFIG_MAPS, "default", "settings")
TOKEN = Ref(kinds.SECRETS, "default", "web-1-x-token")


def with_a_copy_that_nobody_uses(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, followed={"c2": {MAP: {}}}, originals={MAP: {}})


def user(well: FleetSnapshot) -> FleetSnapshot:
    """Return the pod in c2 uses a ConfigMap, which is there."""
    changed = copy.deepcopy(well)
    spec = changed.proxies["default/web-1"]["spec"]
    spec["volumes"] = followed_objects.volumes(["configmap/settings"])
    original = followed_objects.build(Thing("settings", ThingKind.CONFIG_MAP))
    return replace(changed, followed={"c2": {MAP: original}}, originals={MAP: original})


def without_the_copy(well: FleetSnapshot) -> FleetSnapshot:
    return replace(user(well), followed={})


def without_the_original(well: FleetSnapshot) -> FleetSnapshot:
    return replace(user(well), originals={})


def with_an_old_label(well: FleetSnapshot) -> FleetSnapshot:
    later = followed_objects.build(Thing("settings", ThingKind.CONFIG_MAP, label=2))
    return replace(user(well), originals={MAP: later})


def with_old_contents(well: FleetSnapshot) -> FleetSnapshot:
    later = followed_objects.build(Thing("settings", ThingKind.CONFIG_MAP, version=2))
    return replace(user(well), originals={MAP: later})


SERVICE = Ref(kinds.SERVICES, "default", "to-web")


def with_a_service_that_stayed(well: FleetSnapshot) -> FleetSnapshot:
    return replace(
        well, originals={SERVICE: followed_objects.build(Thing("web", ThingKind.SERVICE))}
    )


def with_an_old_pod(well: FleetSnapshot) -> FleetSnapshot:
    newer = replace(well.wish.workloads["web"], version=2)
    return replace(well, wish=well.wish.with_(newer))


def with_a_service_of_nobody(well: FleetSnapshot) -> FleetSnapshot:
    service = followed_objects.build(Thing("gone", ThingKind.SERVICE))
    return replace(well, originals={SERVICE: service}, followed={"c2": {SERVICE: service}})


def with_a_finalizer_of_no_target(well: FleetSnapshot) -> FleetSnapshot:
    changed = copy.deepcopy(well)
    changed.proxies["default/web-1"]["metadata"]["finalizers"] = [names.finalizer("default", "c9")]
    return changed


def test_what_is_used_and_up_to_date_is_well(well: FleetSnapshot) -> None:
    assert rules.violations(user(well)) == []
    service = followed_objects.build(Thing("web", ThingKind.SERVICE))
    served = {"c2": {SERVICE: service}}
    assert rules.violations(replace(well, originals={SERVICE: service}, followed=served)) == []
    assert rules.violations(replace(with_a_service_of_nobody(well), followed={})) == []


def with_a_token_of_another_pod(well: FleetSnapshot) -> FleetSnapshot:
    labels = {keys.TOKEN: "", keys.PARENT_UID: "uid-gone"}
    return replace(well, followed={"c2": {TOKEN: {"metadata": {"labels": labels}}}})


def test_what_a_pod_uses_where_it_is_has_a_user(well: FleetSnapshot) -> None:
    labels = {keys.TOKEN: "", keys.PARENT_UID: "uid-web-1"}
    token = {"metadata": {"labels": labels}}
    changed = copy.deepcopy(well)
    spec = changed.proxies["default/web-1"]["spec"]
    spec["volumes"] = [{"name": "v", "configMap": {"name": "settings"}}]
    changed = replace(changed, originals={MAP: {}})
    assert not rules.violations(replace(changed, followed={"c2": {MAP: {}, TOKEN: token}}))
    elsewhere: dict[str, dict[Ref, Object]] = {"c2": {MAP: {}}, "c3": {MAP: {}, TOKEN: token}}
    assert (
        len(
            list(followed_objects.followed_objects_have_users(replace(changed, followed=elsewhere)))
        )
        == 2
    )


def without_targets(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, targets={})


def without_nodes(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, nodes={})


def with_more_wanted(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, wish=well.wish.with_(replace(RUNS, replicas=2)))


def with_a_job_that_did_not_end(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, jobs={})


def with_an_index_that_did_not_end(well: FleetSnapshot) -> FleetSnapshot:
    status = {"succeeded": 3, "completedIndexes": "0,2"}
    return replace(well, jobs={**well.jobs, "default/count": {"status": status}})


def with_a_job_that_failed(well: FleetSnapshot) -> FleetSnapshot:
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    status = {"succeeded": 1, "failed": 2, "conditions": [failed]}
    return replace(well, jobs={**well.jobs, "default/count": {"status": status}})


def with_a_place_that_waits(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, wish=well.wish.with_(replace(RUNS, replicas=2, on="c2")))


def test_what_may_be_in_one_target_only_waits_while_that_is_none(well: FleetSnapshot) -> None:
    assert rules.violations(with_a_place_that_waits(well))
    elsewhere = replace(RUNS, replicas=2, on="c3")
    assert rules.violations(replace(well, wish=well.wish.with_(elsewhere))) == []


def test_what_no_target_may_have_by_its_policy_waits(well: FleetSnapshot) -> None:
    changed = with_more_wanted(well)
    assert rules.violations(replace(changed, drained={"web": frozenset({"c3"})}))
    assert not rules.violations(replace(changed, drained={"web": frozenset({"c2"})}))

    moved = with_an_end_that_does_not_come(changed)
    assert rules.violations(replace(moved, drained={"web": frozenset({"c3"})}))
    assert not rules.violations(replace(moved, drained={"web": frozenset({"c2"})}))


def with_less_wanted(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, wish=well.wish.without("web"))


def without_a_reason(well: FleetSnapshot) -> FleetSnapshot:
    changed = copy.deepcopy(well)
    changed.proxies["default/never"]["status"] = {"phase": "Pending"}
    return changed


def with_another_phase(well: FleetSnapshot) -> FleetSnapshot:
    changed = copy.deepcopy(well)
    changed.delegates["c2"]["default/web-1-x"]["status"]["phase"] = "Pending"
    return changed


def with_another_pod_of_that_name(well: FleetSnapshot) -> FleetSnapshot:
    return replace(well, survivors={"uid-before": "default/web-1"})


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (without_chaperons, rules.delegates_have_chaperons),
        (without_proxies, rules.chaperons_have_proxies),
        (with_a_chaperon_in_both, rules.chaperons_have_proxies),
        (with_a_chaperon_in_both, rules.bound_proxies_have_one_chaperon),
        (without_chaperons, rules.bound_proxies_have_one_chaperon),
        (without_delegates, rules.allowed_chaperons_have_delegates),
        (with_a_copy_that_nobody_uses, followed_objects.followed_objects_have_users),
        (with_a_token_of_another_pod, followed_objects.followed_objects_have_users),
        (without_the_copy, followed_objects.used_objects_are_as_in_the_source),
        (without_the_original, followed_objects.used_objects_are_as_in_the_source),
        (with_an_old_label, followed_objects.used_objects_are_as_in_the_source),
        (with_old_contents, followed_objects.used_objects_are_as_in_the_source),
        (with_a_service_that_stayed, followed_objects.used_objects_are_as_in_the_source),
        (with_a_service_of_nobody, followed_objects.followed_objects_have_users),
        (with_a_finalizer_of_no_target, rules.finalizers_are_those_of_targets),
        (without_targets, rules.nothing_is_left_where_a_target_was),
        (with_an_end_that_does_not_come, rules.nothing_stays_half_deleted),
        (with_a_chaperon_that_does_not_end, rules.nothing_stays_half_deleted),
        (without_targets, rules.nodes_are_those_of_targets),
        (without_nodes, rules.nodes_are_those_of_targets),
        (with_more_wanted, rules.what_is_wanted_runs),
        (with_less_wanted, rules.what_is_wanted_runs),
        (with_an_old_pod, rules.what_is_wanted_runs),
        (with_a_job_that_did_not_end, jobs.jobs_complete),
        (with_an_index_that_did_not_end, jobs.jobs_complete),
        (with_a_job_that_failed, jobs.jobs_complete),
        (with_a_job_that_failed, jobs.disruptions_fail_no_job),
        (with_a_place_that_waits, rules.what_is_wanted_runs),
        (without_a_reason, rules.rejected_pods_say_why),
        (with_another_phase, rules.statuses_agree),
        (with_another_pod_of_that_name, rules.nothing_was_ended_without_reason),
    ],
)
def test_a_rule_finds_what_it_is_about(
    well: FleetSnapshot,
    broken: Callable[[FleetSnapshot], FleetSnapshot],
    rule: Callable[[FleetSnapshot], object],
) -> None:
    assert list(rule(broken(well)))  # type: ignore[call-overload]


def test_every_rule_is_among_those_that_are_checked(well: FleetSnapshot) -> None:
    assert rules.violations(without_proxies(well))
    written = [
        found
        for module in (rules, followed_objects, jobs)
        for name, found in vars(module).items()
        if not name.startswith("_")
        and inspect.isfunction(found)
        and list(inspect.signature(found).parameters) == ["snapshot"]
        and found is not rules.violations
    ]
    assert sorted(written, key=str) == sorted(rules.RULES, key=str)


def test_a_pod_that_a_taint_has_ended_is_no_violation(well: FleetSnapshot) -> None:
    changed = replace(with_another_pod_of_that_name(well), excused={"uid-before": "default/web-1"})
    assert rules.violations(changed) == []
