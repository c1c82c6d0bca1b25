"""When all pods of a target are looked at: not at each word of a link."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from vnode.pods.source.target_looks import TargetLooks


def test_pods_are_looked_at_once_all_are_known_and_when_what_matters_changes() -> None:
    link = SimpleNamespace(
        synced=False, answers=True, runs_vnode=False, health=SimpleNamespace(healthy=False)
    )
    known: Any = link
    looks = TargetLooks(known)
    assert not looks.is_due(), "it connects"
    link.runs_vnode = True
    assert not looks.is_due(), "it reads what the target has"
    link.synced = link.health.healthy = True
    assert looks.is_due()
    assert not looks.is_due(), "it has moved, say"
    link.runs_vnode = False
    assert looks.is_due()


def test_pods_of_a_target_that_answers_again_are_looked_at() -> None:
    link = SimpleNamespace(
        synced=True, answers=True, runs_vnode=True, health=SimpleNamespace(healthy=True)
    )
    known: Any = link
    looks = TargetLooks(known)
    assert looks.is_due()
    link.answers = link.health.healthy = False
    assert not looks.is_due()
    link.answers = link.health.healthy = True
    assert looks.is_due()
