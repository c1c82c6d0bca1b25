"""What else has to know of a kind that follows pods, besides its family."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vnode.api import documents, kinds
from vnode.api.kinds import Kind
from vnode.following.config import FollowingConfig
from vnode.following.family import Family
from vnode.following.following import families

ROOT = Path(__file__).parents[3]
RBAC = ROOT / "vnode" / "manifests" / "rbac"
IN_SOURCE = {"get", "list", "watch"}
IN_TARGET = IN_SOURCE | {"create", "update", "delete"}


class Anything:
    """Stands for what the constructors of families only keep."""

    def __getattr__(self, _name: str) -> Anything:
        return self

    def __call__(self, *_words: Any) -> Anything:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())


def registered() -> list[Any]:
    anything: Any = Anything()
    return families(
        anything,
        FollowingConfig(),
        anything,
        relabel=anything,
        target_exists=anything,
        is_global=anything,
    )


BY_NAME_ONLY = {kinds.SERVICE_ACCOUNTS}  # nothing of the original is read
CARRIED = [kind for family in registered() for kind in family.carried]


def verbs(file: str, role: str, kind: Kind) -> set[str]:
    """Return the verbs that a role of a manifest allows for all objects of a kind."""
    return {
        verb
        for obj in documents.load_all((RBAC / file).read_text())
        if obj["kind"] == "ClusterRole" and obj["metadata"]["name"] == role
        for rule in obj["rules"]
        if _covers(rule, kind)
        for verb in rule["verbs"]
    }


def _covers(rule: Any, kind: Kind) -> bool:
    named = "resourceNames" in rule
    return kind.group in rule["apiGroups"] and kind.plural in rule["resources"] and not named


def settings() -> Iterator[str]:
    return (family.setting for family in registered())


def test_copies_of_all_kinds_but_those_with_data_go_with_their_target_and_with_vnode() -> None:
    gone = {kind for family in registered() if not family.keeps_copies for kind in family.carried}
    assert gone == set(kinds.FOLLOWING)


def test_each_kind_has_one_family() -> None:
    assert len(CARRIED) == len(set(CARRIED))


@pytest.mark.parametrize("kind", [kind for kind in CARRIED if kind not in BY_NAME_ONLY], ids=str)
def test_the_agent_may_watch_the_originals(kind: Kind) -> None:
    assert verbs("agent.yaml", "vnode", kind) >= IN_SOURCE


@pytest.mark.parametrize("family", registered(), ids=lambda family: type(family).__name__)
def test_a_source_may_write_copies(family: Any) -> None:
    for kind in family.carried:
        allowed = verbs("source-roles.yaml", family.role, kind)
        assert allowed >= (IN_TARGET - {"update"} if kind in BY_NAME_ONLY else IN_TARGET)


def test_what_the_usual_role_does_not_allow_is_known_where_copies_are_cleaned_up() -> None:
    usual = Family.role
    extra = {kind for family in registered() if family.role != usual for kind in family.carried}
    assert extra == kinds.FOLLOWING_BY_EXTRA_ROLE


@pytest.mark.parametrize("setting", sorted(set(settings())))
def test_messages_name_a_field_of_the_configuration(setting: str) -> None:
    room, _, field = setting.partition(".")
    assert room == "following"
    assert field in FollowingConfig.__struct_encode_fields__


def test_a_family_that_is_turned_off_is_not_carried() -> None:
    anything: Any = Anything()
    off = FollowingConfig(config_maps_and_secrets=False, services=False, network_policies=False)
    found = families(
        anything, off, anything, relabel=anything, target_exists=anything, is_global=anything
    )
    assert [family.active for family in found] == [False]
