"""Whoever writes an owner reference of another namespace belongs to nobody there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scheduling.builders import pod, virtual_node
from vnode.api.owners import OwnerKey, key_as_owner, owner_key
from vnode.scheduling.cache import Cache

ROOT = Path(__file__).resolve().parents[3]
NAMES = st.text("ab", min_size=1, max_size=3)

# Where one object is compared with its own owner, in one namespace. Nowhere else is a UID enough.
BY_UID = {
    "vnode/api/objects.py",
    "vnode/api/owners.py",
    "vnode/issuing/token_secret.py",
    "vnode/pods/delegate.py",
    "vnode/pods/reservations.py",
    "vnode/pods/source/termination.py",
    "vnode/pods/target/own_delegates.py",
    "vnode/pods/target/delegate_spans.py",  # of the chaperon whose key it has
    "vnode/cli/remove/finalizer_removal.py",
    "vnode/targetsets/made_targets.py",
    "vnode/telemetry/audit.py",
}


@given(NAMES, NAMES, NAMES, NAMES)
def test_two_owners_are_one_only_in_one_namespace_and_with_one_uid(
    namespace: str, uid: str, other_namespace: str, other_uid: str
) -> None:
    one = owner_key(pod("p", namespace=namespace, owner=uid))
    other = owner_key(pod("q", namespace=other_namespace, owner=other_uid))
    assert (one == other) == ((namespace, uid) == (other_namespace, other_uid))
    assert one == key_as_owner({"metadata": {"namespace": namespace, "uid": uid}})


def test_who_has_no_owner_has_no_key() -> None:
    assert owner_key(pod("p")) is None


@given(st.lists(st.tuples(NAMES, st.sampled_from("uv"), st.sampled_from("ab")), max_size=30))
def test_pods_are_counted_by_owners_of_their_own_namespace(
    placed: list[tuple[str, str, str]],
) -> None:
    cache = Cache()
    for node in "ab":
        cache.update_node(virtual_node(node))

    for number, (namespace, owner, node) in enumerate(placed):
        cache.set_pod(pod(f"p{number}", namespace=namespace, owner=owner, node=node))

    for namespace, owner, _ in placed:
        expected = Counter(n for space, uid, n in placed if (space, uid) == (namespace, owner))
        counted: Any = cache.snapshot().pod_counts.owned(OwnerKey(f"{namespace}/{owner}"))
        assert counted == expected


def test_nothing_is_found_by_the_uid_of_an_owner_alone() -> None:
    found = {
        str(file.relative_to(ROOT))
        for package in ("vnode", "scheduler_plugins")
        for file in (ROOT / package).rglob("*.py")
        if re.search(r"\bcontroller_uid\(", file.read_text())
    }
    assert found == BY_UID, "use vnode.api.owners.owner_key"
