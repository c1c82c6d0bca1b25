from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.scheduling import diagnosis


def test_every_target_says_why() -> None:
    assert diagnosis.explain(
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
    reasons = {f"c{number}": "full" for number in range(12)} | {"x": "cordoned", "y": "cordoned"}
    assert diagnosis.explain(reasons) == (
        "0/14 targets: c0, c1, c2 and 9 more: full; x, y: cordoned"
    )


def test_a_source_without_targets_is_told_to_connect_one() -> None:
    assert "connect one" in diagnosis.explain({})


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=200)), st.integers(100, 2000))
def test_the_line_never_exceeds_its_limit(reasons: dict[str, str], limit: int) -> None:
    line = diagnosis.explain(reasons, limit)
    assert len(line) <= limit
    assert "\n" not in line or any("\n" in target for target in reasons)


def test_what_is_left_out_is_counted() -> None:
    reasons = {f"c{number}": f"reason {number} " + "x" * 50 for number in range(10)}
    line = diagnosis.explain(reasons, 200)
    assert line.endswith("; and 8 more reasons")
