"""The rights of an agent that is held to namespaces, and the settings by which it is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from vnode.api import kinds, objects
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.cli import installed, manifests, scoped_rights
from vnode.cli.doctor import cluster_checks
from vnode.cli.doctor.facts import ClusterFacts, ScopeFacts
from vnode.cli.doctor.findings import Level
from vnode.cli.installed import InstallFlags, InstallSettings

NAMED = ("team-a", "team-b")


def rights(named: tuple[str, ...]) -> Iterator[tuple[str, str, str, str]]:
    """Yield (namespace or "", resource, its names, verb) of all that the agent may do."""
    objs = manifests.rbac("vnode", named)
    roles = {(obj["kind"], objects.key(obj)): obj for obj in objs if "rules" in obj}
    for binding in objs:
        if any(subject["name"] == "vnode" for subject in binding.get("subjects", ())):
            place, name = objects.namespace(binding), binding["roleRef"]["name"]
            is_role = binding["roleRef"]["kind"] == "Role"
            key = objects.join_key(place, name) if is_role else name
            role: Any = roles.get((binding["roleRef"]["kind"], key), {"rules": ()})
            for rule in role["rules"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield place, resource, ",".join(rule.get("resourceNames", ())), verb


def test_each_right_is_there_in_each_named_namespace_or_in_the_cluster_and_none_is_lost() -> None:
    held = set(rights(NAMED))
    for place, resource, names, verb in rights(()):
        if place:
            assert (place, resource, names, verb) in held
        elif resource.partition("/")[0] in scoped_rights.CLUSTER_SCOPED:
            assert ("", resource, names, verb) in held
        else:
            assert {(name, resource, names, verb) for name in NAMED} <= held


def test_no_right_in_the_cluster_is_about_what_is_in_namespaces() -> None:
    scoped = scoped_rights.CLUSTER_SCOPED
    for place, resource, names, _verb in rights(NAMED):
        is_for_finalizers = (resource, names) in {("roles", "vnode"), ("rolebindings", "vnode")}
        assert place or is_for_finalizers or resource.partition("/")[0] in scoped
        assert place in ("", *NAMED, "vnode", "kube-node-lease", "kube-system", "default")


def test_secrets_are_read_in_named_namespaces_and_its_own_only() -> None:
    found = {place for place, resource, _names, _verb in rights(NAMED) if resource == "secrets"}
    assert found == {*NAMED, "vnode"}


def test_roles_of_sources_are_given_in_named_namespaces_only() -> None:
    found = {place for place, _resource, _names, verb in rights(NAMED) if verb == "bind"}
    assert found == set(NAMED)


def test_it_is_known_of_each_resource_whether_it_is_in_a_namespace() -> None:
    known = {each.plural for each in vars(kinds).values() if isinstance(each, Kind)}
    assert {resource.partition("/")[0] for _place, resource, *_more in rights(())} <= known


def test_the_webhook_is_called_for_named_namespaces_only_and_remembers_them() -> None:
    settings = InstallSettings("agents", "https://192.0.2.1:9443/mutate--v1-pod", named=NAMED)
    made = installed.hook(settings)
    for hook in made["webhooks"]:
        named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(NAMED)}
        assert named in hook["namespaceSelector"]["matchExpressions"]

    assert installed.read(made) == settings
    assert installed.command(settings).endswith("--namespaces team-a,team-b")


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (InstallFlags(), NAMED),
        (InstallFlags(named=("team-c",)), ("team-c",)),
        (InstallFlags(all_namespaces=True), ()),
    ],
)
def test_another_run_keeps_the_namespaces_unless_it_is_told_others(
    flags: InstallFlags, wanted: tuple[str, ...]
) -> None:
    present = InstallSettings(named=NAMED)
    assert flags.applied_to(present).named == wanted
    kept = list(installed.kept_settings(flags, present))
    assert ["the agent stays held to team-a, team-b" in line for line in kept] == (
        [True] if flags == InstallFlags() else []
    )


def test_some_namespaces_and_all_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="--all-namespaces exclude"):
        InstallFlags(named=NAMED, all_namespaces=True)


def test_the_agents_own_namespace_is_not_among_them() -> None:
    with pytest.raises(ConfigError, match="vnode, the agent's own"):
        InstallFlags(named=("team-a", "vnode")).applied_to(InstallSettings())


def facts(**more: Any) -> ClusterFacts:
    given: dict[str, Any] = {
        "roles": [o for o in manifests.rbac("vnode", NAMED) if o["kind"] == "ClusterRole"],
        "webhook": installed.hook(InstallSettings(named=NAMED)),
        "scope": ScopeFacts(NAMED),
    }
    return ClusterFacts("here", datetime(2026, 1, 1, tzinfo=UTC), **(given | more))


def findings(**more: Any) -> list[tuple[Level, str]]:
    found = cluster_checks.check(facts(**more))
    return [(each.level, each.text) for each in found if each.check == "namespaces"]


def test_doctor_says_to_what_the_agent_is_held() -> None:
    assert findings() == [(Level.OK, "the agent is held to team-a, team-b")]
    rights = [each for each in cluster_checks.check(facts()) if each.check == "agent's rights"]
    assert [each.level for each in rights] == [Level.OK]


def test_doctor_names_namespaces_whose_pods_are_ordinary_ones_though_they_have_the_label() -> None:
    [(level, text)] = findings(scope=ScopeFacts(NAMED, left_out=("team-c",)))
    assert level == Level.WARN
    assert text.startswith("team-c has the label multicluster-scheduler=enabled")
    assert "ordinary pods" in text


def test_doctor_names_what_keeps_the_agent_out_of_a_named_namespace() -> None:
    [missing, closed] = findings(
        scope=ScopeFacts(NAMED, missing=("team-a",), closed=("team-b",)),
    )
    assert missing == (Level.WARN, "team-a is named, and does not exist")
    assert closed[0] == Level.FAIL
    assert "rolebinding/team-b/vnode" in closed[1]


def test_doctor_names_targets_that_nobody_serves() -> None:
    target = {"metadata": {"name": "gpu", "namespace": "team-c"}}
    assert (
        Level.FAIL,
        "target team-c/gpu is served by nobody: the agent may not read it",
    ) in findings(targets=[target])


def test_doctor_says_nothing_of_namespaces_where_the_agent_has_rights_in_all() -> None:
    assert findings(scope=None, webhook=installed.hook(InstallSettings())) == []
