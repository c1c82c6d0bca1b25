from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from vnode.api.target_key import TargetKey
from vnode.scheduling import diagnosis

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,5}", fullmatch=True)
KEYS = st.builds(TargetKey, st.sampled_from(["", "team"]), NAMES)


def explain(reasons: Mapping[str, str], limit: int = diagnosis.EVENT_LIMIT) -> str:
    """Explain the reasons of Targets of one namespace, which are given by name."""
    keyed = {TargetKey("team", name): reason for name, reason in reasons.items()}
    return diagnosis.explain(keyed, "team", limit)


def test_what_a_scheduler_adds_goes_and_a_note_behind_it_stays() -> None:
    told = (
        "0/3 nodes are available: 3 node(s) didn't match. no new claims to deallocate, "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    short = "0/3 nodes are available: 3 node(s) didn't match"
    assert explain({"c2": told}) == f"0/1 targets: c2: {short}"
    assert explain({"c2": f"{told} (a note)"}) == f"0/1 targets: c2: {short} (a note)"


def test_every_target_says_why() -> None:
    assert explain(
        {
            "c2": "0/4 nodes are available: 4 Insufficient cpu.",
            "c3": "unreachable for 3m",
            "c4": "exceeded quota: a,\n  b",
        }
    ) == (
        "0/3 targets: c2: 0/4 nodes are available: 4 Insufficient cpu; "
        "c3: unreachable for 3m; c4: exceeded quota: a, b"
    )


def test_targets_with_one_reason_are_put_together() -> None:
    reasons = {f"c{number}": "full" for number in range(9)} | {"x": "cordoned", "y": "cordoned"}
    assert explain(reasons) == "0/11 targets: c0, c1, c2 and 6 more: full; x, y: cordoned"


def test_a_namespace_without_targets_is_told_how_to_get_one() -> None:
    line = diagnosis.explain({}, "team")
    assert 'no Target in namespace "team"' in line
    assert "vnode connect --namespace team" in line


def test_a_target_and_a_cluster_target_of_one_name_are_told_apart() -> None:
    reasons = {TargetKey("", "c2"): "full", TargetKey("team", "c2"): "cordoned"}
    line = diagnosis.explain(reasons | {TargetKey("team", "c3"): "full"}, "team")
    assert line == "0/3 targets: c2, c3: full; team/c2: cordoned"
    assert diagnosis.split(line, {"c2", "c3", "team/c2"}) == {
        "c2": "full",
        "c3": "full",
        "team/c2": "cordoned",
    }


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=200)), st.integers(100, 2000))
def test_the_line_never_exceeds_its_limit(reasons: dict[str, str], limit: int) -> None:
    line = explain(reasons, limit)
    assert len(line) <= limit
    assert "\n" not in line or any("\n" in target for target in reasons)


def test_what_is_left_out_is_counted_and_is_no_reason() -> None:
    reasons = {f"c{number}": f"reason {number} " + "x" * 50 for number in range(10)}
    line = explain(reasons, 200)
    assert line.endswith("; and 8 more reasons")
    assert diagnosis.split(line, reasons) == dict(list(reasons.items())[:2])


@given(st.dictionaries(KEYS, st.sampled_from(["full", "0/2 nodes: a; b", "no: c"]), max_size=8))
def test_what_is_put_together_can_be_taken_apart(reasons: dict[TargetKey, str]) -> None:
    labels = diagnosis.labels(reasons)
    assert len(set(labels.values())) == len(reasons)
    found = diagnosis.split(diagnosis.explain(reasons, "team"), labels.values())
    expected = {label: reasons[target] for target, label in labels.items()}
    assert found.items() <= expected.items()
    assert set(found.values()) == set(reasons.values())  # names beyond three are only counted


def test_what_is_no_such_line_has_no_reasons() -> None:
    assert diagnosis.split("0/4 nodes are available: 4 Insufficient cpu", {"4"}) == {}
    assert diagnosis.split("0/1 targets: c2: full", set()) == {}
