"""Properties of every decision, whatever the inventory does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
from hypothesis import given

from vnode.targetsets import deciding
from vnode.targetsets.deciding import MadeTarget, SetFacts
from vnode.targetsets.selection import ProfileSelection
from vnode.targetsets.spec import RemovalPolicy, TargetSetSpec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("a", "b", "c", "d", "e")
SPACES = ("fleet", "team")
moments = st.integers(0, 1000).map(lambda seconds: NOW - timedelta(seconds=seconds))


@st.composite
def all_facts(draw: st.DrawFn) -> SetFacts:
    keys = st.tuples(st.sampled_from(SPACES), st.sampled_from(NAMES))
    selected = {
        f"{space}/{name}": {"metadata": {"namespace": space, "name": name}}
        for space, name in draw(st.sets(keys))
    }
    marks = st.none() | moments
    made = {
        name: MadeTarget(name, f"{draw(st.sampled_from(SPACES))}/{name}", draw(marks), draw(marks))
        for name in draw(st.sets(st.sampled_from(NAMES)))
    }
    taken = dict.fromkeys(draw(st.sets(st.sampled_from(NAMES))) - made.keys(), "by hand")
    return SetFacts(
        TargetSetSpec(ProfileSelection(), draw(st.sampled_from(RemovalPolicy))),
        draw(st.none() | st.just(selected)),
        made,
        taken,
        draw(st.dictionaries(st.sampled_from(NAMES), moments)),
        NOW,
        is_empty=draw(st.booleans()),
        held=draw(st.booleans()),
        confirmed=draw(st.booleans()),
        removed=draw(st.dictionaries(st.sampled_from(NAMES), moments)),
    )


@given(all_facts())
def test_each_profile_has_a_target_or_a_reason(facts: SetFacts) -> None:
    decision, selected = deciding.decide(facts), facts.selected or {}
    served = {target.profile for target in facts.made.values()} & selected.keys()
    made = set(decision.create.values())
    assert served | made | decision.refused.keys() == selected.keys()
    assert len(served) + len(made) + len(decision.refused) == len(selected)
    assert not decision.create.keys() & (facts.made.keys() | facts.taken.keys())


@given(all_facts())
def test_nothing_is_removed_whose_profile_is_selected(facts: SetFacts) -> None:
    decision, selected = deciding.decide(facts), facts.selected or {}
    steps = [*decision.mark, *decision.cordoned, *decision.drain]
    assert len(steps) == len(set(steps))
    assert not set(steps) & set(decision.back)
    for name in steps:
        assert facts.made[name].profile not in selected
        assert facts.spec.policy is not RemovalPolicy.ORPHAN


@given(all_facts())
def test_while_removals_are_held_no_target_goes_any_further(facts: SetFacts) -> None:
    decision = deciding.decide(facts)
    if decision.held is not None or facts.selected is None:
        assert not decision.mark
        assert not decision.drain


@given(all_facts())
def test_pods_are_evicted_only_after_the_time(facts: SetFacts) -> None:
    decision = deciding.decide(facts)
    for name in decision.drain:
        since = facts.made[name].gone_since
        assert since is not None
        assert (NOW - since).total_seconds() >= facts.spec.after
        assert facts.spec.policy is RemovalPolicy.DRAIN


@given(all_facts())
def test_most_at_once_go_only_if_somebody_confirms(facts: SetFacts) -> None:
    decision = deciding.decide(facts)
    if facts.confirmed or len(facts.made) < deciding.GUARDED:
        return

    assert 2 * len(decision.mark) <= len(facts.made)


@given(all_facts())
def test_nothing_is_drained_while_a_new_target_connects(facts: SetFacts) -> None:
    selected = facts.selected or {}
    connecting = [
        (NOW - target.connecting_since).total_seconds() < deciding.CONNECTING
        for target in facts.made.values()
        if target.connecting_since and target.profile in selected
    ]
    assert not (any(connecting) and deciding.decide(facts).drain)
