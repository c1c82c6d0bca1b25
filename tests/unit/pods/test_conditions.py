"""Whose a condition is: what of it comes from the delegate, stays, and travels down."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.pods import strategic
from vnode.api import keys
from vnode.api.identity import Identity
from vnode.pods import annotation_merge, changes, conditions, delegate
from vnode.pods.source import feedback, proxy_state

PARENT = Identity("c1", "uid-of-c1")
GATE = "example.com/lb-ready"
THEN, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def condition(type_, status="True", since=THEN, **fields):
    return {"type": type_, "status": status, "lastTransitionTime": since, **fields}


READY = condition("Ready")
EVICTED = condition("DisruptionTarget", reason="EvictionByEvictionAPI")


def proxy(*entries, gates=()):
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "annotations": {}},
        "spec": {
            "containers": [{"name": "main"}],
            "nodeName": "admiralty-c2",
            "readinessGates": [{"conditionType": type_} for type_ in gates],
        },
        "status": {"phase": "Running", "conditions": list(entries)},
    }


def chaperon(*entries, sent=None):
    annotations = {keys.SENT: annotation_merge.text({"conditions": sent})} if sent else {}
    return {
        "metadata": {"name": "web-x", "uid": "c", "annotations": annotations},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running", "conditions": list(entries)},
    }


def fed(pod, reported):
    """Feed the delegate's status back to its proxy; return the conditions of the proxy."""
    strategic.apply(pod, feedback.status_patch(pod, reported))
    assert feedback.status_patch(pod, reported) == {}
    return conditions.of(pod)


def sent(pod, reported):
    """Return the chaperon after the source has sent all conditions that it has to send."""
    news = changes.conditions_to_send(proxy_state.trim(pod), reported)
    return chaperon(*reported["status"]["conditions"], sent=news)


def carried_out(pod, reported):
    """Return the conditions that a delegate without any has after the sent ones were applied."""
    return {t: entry for t, entry in changes.sent_conditions(reported).items() if entry}


def test_what_an_eviction_wrote_on_the_proxy_stays():
    pod = proxy(READY, EVICTED)
    assert fed(pod, chaperon(condition("Ready", "False"))) == {
        "Ready": condition("Ready", "False"),
        "DisruptionTarget": EVICTED,
    }
    assert pod["metadata"]["annotations"] == {}


def test_no_target_says_that_a_pod_of_the_source_awaits_its_replacement():
    """Another source's policy may have moved the delegate, which is a proxy there."""
    waits = condition(keys.AWAITS_REPLACEMENT)
    assert fed(proxy(READY), chaperon(READY, waits)) == {"Ready": READY}
    pod = proxy(READY, waits, gates=[keys.AWAITS_REPLACEMENT])
    assert fed(pod, chaperon(READY))[keys.AWAITS_REPLACEMENT] == waits
    assert carried_out(pod, sent(pod, chaperon(READY))) == {}


def test_an_eviction_in_the_target_is_told_once_and_the_sources_own_counts():
    theirs = {**EVICTED, "reason": "PreemptionByScheduler"}
    assert fed(proxy(READY), chaperon(READY, theirs))["DisruptionTarget"] == theirs
    assert fed(proxy(READY, EVICTED), chaperon(READY, theirs))["DisruptionTarget"] == EVICTED


def test_a_patch_names_only_the_conditions_that_it_changes():
    """What others write meanwhile stays."""
    initialized = condition("Initialized")
    pod, reported = proxy(READY, initialized), chaperon(condition("Ready", "False"), initialized)
    patch = feedback.status_patch(pod, reported)
    assert patch["status"]["conditions"] == [condition("Ready", "False")]


def test_fields_that_a_condition_loses_are_taken_off():
    pod = proxy(condition("Ready", "False", reason="No", message="no"))
    assert fed(pod, chaperon(READY))["Ready"] == READY


def test_a_kubelets_condition_goes_with_the_delegates_and_needs_no_record():
    resizing = condition("PodResizePending")
    pod = proxy(READY)
    assert "PodResizePending" in fed(pod, chaperon(READY, resizing))
    assert pod["metadata"]["annotations"] == {}
    assert "PodResizePending" not in fed(pod, chaperon(READY))


def test_a_condition_of_the_targets_controllers_comes_changes_and_goes():
    """Also if the agent was restarted in between: nothing but the objects remembers."""
    pod, theirs = proxy(READY), condition("x/checked")
    assert fed(pod, chaperon(READY, theirs))["x/checked"] == theirs
    assert keys.FED_BACK_CONDITIONS in pod["metadata"]["annotations"]
    changed = condition("x/checked", "False", LATER)
    assert fed(pod, chaperon(READY, changed))["x/checked"] == changed
    assert "x/checked" not in fed(pod, chaperon(READY))
    assert pod["metadata"]["annotations"] == {}


def test_a_condition_that_the_source_has_changed_since_is_the_sources():
    pod, theirs, ours = proxy(READY), condition("x/checked"), condition("x/checked", "False")
    fed(pod, chaperon(READY, theirs))
    pod["status"]["conditions"] = [READY, ours]
    assert fed(pod, chaperon(READY, theirs))["x/checked"] == ours
    assert fed(pod, chaperon(READY))["x/checked"] == ours


def test_a_condition_that_the_source_has_taken_away_does_not_come_again():
    pod, theirs = proxy(READY), condition("x/checked")
    fed(pod, chaperon(READY, theirs))
    pod["status"]["conditions"] = [READY]
    assert "x/checked" not in fed(pod, chaperon(READY, theirs))
    assert "x/checked" not in fed(pod, chaperon(READY, condition("x/checked", "False", LATER)))


def test_without_a_delegate_nothing_but_its_absence_is_told():
    pod = proxy(READY, EVICTED, condition("PodScheduled"))
    untouched = [dict(entry) for entry in pod["status"]["conditions"]]
    assert feedback.status_patch(pod, {"metadata": {}, "status": {}}) == {}
    assert pod["status"]["conditions"] == untouched
    refused = condition("PodScheduled", "False", message="exceeded quota")
    reported = {"metadata": {}, "status": {"conditions": [refused]}}
    assert fed(pod, reported) == {"PodScheduled": refused, "DisruptionTarget": EVICTED}


def test_that_a_proxy_is_scheduled_is_the_bindings_word_with_the_kubelets_generation():
    pod, bound = proxy(READY, condition("PodScheduled", reason="Bound")), LATER
    pod["metadata"]["generation"] = 4
    reported = chaperon(condition("PodScheduled", since=bound, observedGeneration=7))
    reported["metadata"]["generation"] = 7
    own = condition("PodScheduled", reason="Bound", observedGeneration=4)
    assert fed(pod, reported)["PodScheduled"] == own


def test_of_two_conditions_of_one_type_the_first_counts():
    assert fed(proxy(), chaperon(READY, condition("Ready", "False")))["Ready"] == READY


def test_a_readiness_gate_that_the_source_sets_travels_and_counts():
    pod, opened = proxy(READY, condition(GATE), gates=[GATE]), condition(GATE)
    assert changes.is_news(proxy_state.trim(pod), chaperon(READY), PARENT)
    reported = sent(pod, chaperon(READY))
    assert changes.sent_conditions(reported)[GATE] == conditions.essence(opened)
    assert fed(pod, reported)[GATE] == opened
    assert sent(pod, reported) == reported

    pod["status"]["conditions"] = [READY, condition(GATE, "False", LATER)]
    reported = sent(pod, chaperon(READY, opened, sent=changes.sent_conditions(reported)))
    assert changes.sent_conditions(reported)[GATE]["status"] == "False"
    assert fed(pod, reported)[GATE]["status"] == "False"

    pod["status"]["conditions"] = [READY]
    reported = sent(pod, reported)
    assert changes.sent_conditions(reported) == {GATE: {}}
    assert GATE not in fed(pod, reported)


def test_only_readiness_gates_travel_and_none_that_is_not_the_sources_to_say():
    gates = [GATE, "Ready", "PodScheduled", "DisruptionTarget"]
    pod = proxy(READY, EVICTED, condition("x/other"), condition("PodScheduled"), gates=gates)
    assert changes.conditions_to_send(pod, chaperon()) == {}


def test_a_gate_that_the_target_opens_comes_back_and_is_not_sent():
    opened = condition(GATE)
    pod = proxy(READY, gates=[GATE])
    assert fed(pod, chaperon(READY, opened))[GATE] == opened
    assert changes.conditions_to_send(pod, chaperon(READY, opened)) == {}
    closed = condition(GATE, "False", LATER)
    assert changes.conditions_to_send(pod, chaperon(READY, closed)) == {}
    assert fed(pod, chaperon(READY, closed))[GATE] == closed


def delegated(*entries, gates=(GATE,)):
    return {**proxy(*entries, gates=gates), "metadata": {"name": "web-x", "uid": "p"}}


def test_a_delegate_takes_what_its_gates_wait_for_and_nothing_else():
    record = {GATE: conditions.essence(condition(GATE)), "Ready": {"status": "True"}, "x/y": {}}
    reported = chaperon(sent=record)
    delta = changes.pending(reported, delegated())
    patch = changes.conditions_patch(delta, reported, delegated(READY))
    assert patch["metadata"] == {"uid": "p"}
    assert patch["status"]["conditions"] == [condition(GATE)]
    assert changes.conditions_patch(delta, reported, delegated(gates=())) == {}


def test_a_gate_that_the_source_has_closed_is_taken_off_the_delegate():
    reported = chaperon(sent={GATE: {}})
    patch = changes.conditions_patch(
        changes.pending(reported, delegated()), reported, delegated(condition(GATE))
    )
    assert patch["status"]["conditions"] == [{"$patch": "delete", "type": GATE}]
    assert changes.conditions_patch(changes.pending(reported, {}), reported, delegated()) == {}


def test_a_delegate_that_is_made_anew_is_told_of_its_gates_again():
    """No new pod has conditions."""
    reported = chaperon(sent={GATE: {"status": "True"}})
    assert changes.pending(reported, delegate.build(reported)) == {
        "conditions": {GATE: {"status": "True"}}
    }


def test_a_pod_is_not_ready_before_its_gates_are():
    """Also where the delegate has none: the source's admission added them, or nothing travels."""
    pod = proxy(gates=[GATE])
    ready = fed(pod, chaperon(READY))["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    assert f'gate "{GATE}" does not exist' in ready["message"]

    pod["status"]["conditions"].append(condition(GATE, "False"))
    assert 'is not "True", but False' in fed(pod, chaperon(READY))["Ready"]["message"]

    pod["status"]["conditions"] = [ready, condition(GATE, since=LATER)]
    assert fed(pod, chaperon(READY))["Ready"] == condition("Ready", since=LATER)


_entries = st.lists(
    st.builds(
        condition,
        st.sampled_from(["Ready", "DisruptionTarget", GATE, "x/y", "PodScheduled"]),
        st.sampled_from(["True", "False"]),
        st.sampled_from([THEN, LATER]),
    ),
    unique_by=lambda entry: entry["type"],
    max_size=4,
)


@given(st.lists(st.tuples(st.sampled_from(["source", "target"]), _entries), max_size=5))
@example(
    [
        ("target", [condition("DisruptionTarget", "False", LATER)]),
        ("source", []),
        ("target", [condition("DisruptionTarget", "True", THEN)]),
        ("source", [condition("DisruptionTarget", "False", LATER)]),  # what it had removed
    ]
)
def test_both_sides_come_to_rest_and_the_source_keeps_its_word(writes):
    """Whoever writes what, and when: soon nothing is left to write on either side.

    What both have written alike, and was not sent, counts as the delegate's.
    """
    pod, reported, own = proxy(gates=[GATE]), chaperon(), {}
    theirs: dict = {}
    for who, entries in writes:
        if who == "source":
            before = conditions.of(pod)
            pod["status"]["conditions"] = entries
            after = conditions.by_type(entries)
            own = {t: e for t, e in after.items() if e != before.get(t)} | {
                t: e for t, e in own.items() if t in after and after[t] == e
            }
        else:
            theirs = conditions.by_type(entries)

        asked = changes.sent_conditions(reported)
        own = {t: e for t, e in own.items() if t in asked or theirs.get(t) != e}
        for _ in range(3):
            reported = chaperon(*theirs.values(), sent=changes.sent_conditions(reported))
            fed(pod, reported)
            reported = sent(pod, reported)
            if GATE in (done := carried_out(pod, reported)):
                theirs = {**theirs, GATE: {"type": GATE, **done[GATE]}}

        reported = chaperon(*theirs.values(), sent=changes.sent_conditions(reported))
        assert feedback.status_patch(pod, reported) == {}
        assert changes.conditions_to_send(pod, reported) == changes.sent_conditions(reported)
        now = conditions.of(pod)
        for type_, entry in own.items():
            if type_ not in ("Ready", "PodScheduled"):
                assert now[type_] == entry
