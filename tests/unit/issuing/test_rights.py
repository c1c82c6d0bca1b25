"""The rights that an author must have are exactly those that a role gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.server import APIServer
from tests.unit.issuing.issuing_environment import SPEC
from tests.unit.scheduling import costs
from vnode.agent import config
from vnode.api import kinds, objects
from vnode.api.authors import Author
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError
from vnode.issuing import rights
from vnode.issuing.config import IssuingConfig
from vnode.issuing.request import RequestedRole
from vnode.issuing.rights import MOST, AuthorRights

ROLES_SPEC = {
    **SPEC,
    "clusterRoles": [],
    "roles": [
        {
            "namespace": "work",
            "name": "readers",
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
        }
    ],
}
WORDS = st.lists(st.sampled_from(["a", "b", "*", "a/log"]), min_size=1, max_size=3, unique=True)
RULE = st.fixed_dictionaries(
    {"verbs": WORDS, "apiGroups": WORDS, "resources": WORDS},
    optional={"resourceNames": WORDS, "nonResourceURLs": WORDS},
)


def covers(rule: dict[str, Any], right: dict[str, Any]) -> bool:
    """Tell whether RBAC's authorizer would allow a right by one rule, wildcards taken literally."""
    if "path" in right:
        return right["verb"] in rule["verbs"] and right["path"] in rule.get("nonResourceURLs", ())

    resource = "/".join(filter(None, (right["resource"], right.get("subresource"))))
    names = rule.get("resourceNames")
    return (
        right["verb"] in rule["verbs"]
        and right["group"] in rule["apiGroups"]
        and resource in rule["resources"]
        and (names is None or right.get("name") in names)
    )


@given(st.lists(RULE, max_size=3))
def test_singles_are_what_the_rules_give_and_no_more(rules: list[dict[str, Any]]) -> None:
    found = list(rights.singles("", rules))
    assert all(any(covers(rule, right) for rule in rules) for right in found)
    wanted = sum(
        len(rule["verbs"])
        * (
            len(rule["apiGroups"]) * len(rule["resources"]) * len(rule.get("resourceNames", "x"))
            + len(rule.get("nonResourceURLs", ()))
        )
        for rule in rules
    )
    assert len(found) == wanted


@given(st.lists(RULE, max_size=3))
def test_a_role_of_a_namespace_gives_rights_there_only(rules: list[dict[str, Any]]) -> None:
    for right in rights.singles("work", rules):
        assert right["namespace"] == "work"
        assert "path" not in right


async def test_a_role_of_too_many_rights_takes_the_waiver() -> None:
    server = APIServer("c1", SystemClock())
    names = [f"n{number}" for number in range(MOST + 1)]
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": names}
    role, asked = (
        RequestedRole("work", "many", (rule,)),
        AuthorRights(server.client(), Author("alice")),
    )
    assert await asked.lacks(role, role.rules, "escalate") == ""
    server.refuse("escalate", "roles")
    assert "too many to check" in await asked.lacks(role, role.rules, "escalate")
    assert server.count("create", kinds.SUBJECT_ACCESS_REVIEWS) == 2


async def test_the_review_is_about_the_author() -> None:
    server = APIServer("c1", SystemClock())
    author = Author("alice", "u", ("g",), {"scopes": ("one", "two")})
    role = RequestedRole("", "paths", ())
    server.refuse("escalate", "clusterroles")
    rule = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
    assert await AuthorRights(server.client(), author).lacks(role, [rule], "escalate") == ""
    specs = [objects.spec(each.body) for each in server.received("create")]
    for spec in specs:
        user = (spec["user"], spec["uid"], spec["groups"], spec["extra"])
        assert user == ("alice", "u", ["g"], {"scopes": ["one", "two"]})

    assert specs[1]["nonResourceAttributes"] == {"verb": "get", "path": "/metrics"}


async def test_requests_are_refused_where_no_tokens_are_issued() -> None:
    server, author = APIServer("c1", SystemClock()), Author("alice")
    request = {"metadata": {"namespace": "team"}, "spec": SPEC}
    off = rights.refusal(server.client(), IssuingConfig())
    assert "issuing.enabled is false" in await off(request, author)
    assert not server.received()
    on = rights.refusal(server.client(), IssuingConfig(enabled=True))
    assert await on(request, author) == ""
    server.refuse("issue", "clustertargets")
    assert await on(request, author) == (
        "alice may not issue clustertargets.multicluster.admiralty.io named east"
    )


async def test_roles_that_the_author_may_not_give_are_refused_at_once() -> None:
    server, author = APIServer("c1", SystemClock()), Author("alice")
    request = {"metadata": {"namespace": "team"}, "spec": ROLES_SPEC}
    refuse = rights.refusal(server.client(), IssuingConfig(enabled=True))
    assert await refuse(request, author) == ""
    for verb, resource in (("bind", "roles"), ("escalate", "roles"), ("get", "secrets")):
        server.refuse(verb, resource)

    assert await refuse(request, author) == (
        "cannot grant role/work/readers: alice may not get secrets in namespace work "
        "(nor escalate roles.rbac.authorization.k8s.io named readers in namespace work)"
    )
    server.refuse("bind", "roles", refused=False)  # it may exist in the target
    assert await refuse(request, author) == ""


def test_a_life_that_no_api_server_gives_is_no_configuration(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("issuing: {enabled: true, maxExpirationSeconds: 60}")
    with pytest.raises(ConfigError, match=r"issuing\.maxExpirationSeconds must be at least 600"):
        config.load(file)

    file.write_text("issuing: {enabled: true}")
    assert config.load(file).issuing == IssuingConfig(enabled=True)
    assert not config.load(None).issuing.enabled


@pytest.mark.parametrize("empty", ["resources", "apiGroups"])
def test_long_lists_of_a_rule_that_gives_nothing_are_not_combined(empty: str) -> None:
    """Nobody has checked a request that is being admitted, nor a role of a target."""
    listed = [f"x{n}" for n in range(2_000)]
    rule = {"verbs": listed, "apiGroups": listed, "resources": listed, empty: []}

    def give() -> None:
        assert list(rights.singles("work", [rule])) == []

    assert costs.bytecodes(give) < 100 * len(listed)
