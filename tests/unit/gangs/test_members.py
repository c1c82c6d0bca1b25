"""Counts of members are what one gets who goes through all of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.gangs.pods import member as pod_of
from vnode.gangs import members, membership
from vnode.gangs.members import GangMember, GangMembers

OWNED = [{"controller": True, "uid": "job"}]


@st.composite
def changed(draw: st.DrawFn) -> GangMember:
    """Draw a pod in any state."""
    moment = {"creationTimestamp": f"2026-01-0{draw(st.integers(1, 3))}T00:00:00Z"}
    if draw(st.integers(0, 4)) == 0:
        moment["deletionTimestamp"] = "2026-01-05T00:00:00Z"

    spec: dict[str, object] = {"priority": draw(st.integers(0, 2))}
    if draw(st.integers(0, 4)) == 0:
        spec["schedulingGates"] = [{"name": "quota"}]

    pod = pod_of(
        "p",
        draw(st.sampled_from([None, 2, 3])),
        node=draw(st.sampled_from(["", "", "t", "u"])),
        ownerReferences=draw(st.sampled_from([[], OWNED, [{**OWNED[0], "uid": "other"}]])),
        spec=spec,
        status={"phase": draw(st.sampled_from(["Pending", "Running", "Succeeded"]))},
        **moment,
    )
    says = membership.of(pod)
    assert says is not None
    return members.member(pod, says)


UIDS = st.sampled_from("abcd")
STEPS = st.lists(st.tuples(UIDS, st.one_of(changed(), st.booleans(), st.none())), max_size=20)


@given(STEPS)
def test_counts_are_those_of_all_members(
    steps: list[tuple[str, GangMember | bool | None]],
) -> None:
    """A step puts a member, says whether it has a place (True, False), or removes it (None)."""
    found, known, reserved = GangMembers(), dict[str, GangMember](), set[str]()
    for uid, step in steps:
        if isinstance(step, GangMember):
            assert found.put(uid, step) is known.get(uid)
            known[uid] = step
        elif uid not in known:
            continue
        elif step is None:
            found.remove(uid)
            del known[uid]
            reserved.discard(uid)
        else:
            assert found.reserve(uid, reserved=step) == (step != (uid in reserved))
            reserved = reserved | {uid} if step else reserved - {uid}

        check(found, known, reserved)


def check(found: GangMembers, known: dict[str, GangMember], reserved: set[str]) -> None:
    live = {uid: each for uid, each in known.items() if not each.is_over}
    bound = {uid: each for uid, each in live.items() if each.node}
    nodes = [each.node for each in bound.values()]
    assert dict(found) == known
    assert found.waiting == {
        uid: each for uid, each in live.items() if not each.node and not each.is_gated
    }
    assert found.bound == bound
    assert found.present == len(found.waiting) + len(bound)
    assert found.placed == sum(
        1
        for uid, each in known.items()
        if each.node and not each.is_ending and (uid in reserved or each.is_over)
    )
    owners = {each.controller for each in live.values() if each.controller}
    succeeded = [each for each in known.values() if each.has_succeeded]
    assert found.succeeded == sum(each.controller in owners for each in succeeded)
    assert found.minimums == sorted({m.says.minimum for m in live.values() if m.says.minimum})
    assert found.node == min(nodes, key=lambda node: (-nodes.count(node), node), default="")
    metadata = [each.pod["metadata"]["creationTimestamp"] for each in live.values()]
    assert found.since == min(metadata, default="")
    assert found.priority == max((m.pod["spec"]["priority"] for m in live.values()), default=0)
