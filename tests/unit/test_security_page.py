"""docs/security.md names a test for each threat, and every right that an account has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vnode.api import documents

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
RBAC = sorted((ROOT / "vnode" / "manifests" / "rbac").iterdir())


@pytest.mark.parametrize("reference", sorted(set(re.findall(r"`(\S+\.py::\w+)`", PAGE))))
def test_each_test_that_the_page_names_exists(reference: str) -> None:
    file, _, name = reference.partition("::")
    assert re.search(rf"^(async )?def {name}\(", (ROOT / "tests" / file).read_text(), re.MULTILINE)


def test_each_threat_has_a_test_or_is_accepted() -> None:
    threats = PAGE.partition("## Threats")[2].partition("## The doors")[0]
    rows = [row for row in threats.splitlines() if row.startswith("|") and "---" not in row]
    rows = [row for row in rows if "What holds" not in row]
    assert len(rows) > 20
    for row in rows:
        assert ".py::" in row or "accepted" in row or "set a quota" in row, row


@pytest.mark.parametrize("file", RBAC, ids=lambda file: file.name)
def test_the_page_names_each_file_of_rights_and_its_accounts(file: Path) -> None:
    assert f"`{file.name}`" in PAGE
    for obj in documents.load_all(file.read_text()):
        if obj["kind"] == "ServiceAccount":
            assert f"`{obj['metadata']['name']}`" in PAGE


def test_the_page_names_each_policy_for_the_agent() -> None:
    rows = {row[0] for row in _table("| Policy | The agent writes | Test |")}
    files = (ROOT / "vnode" / "manifests" / "policies").iterdir()
    names = [
        obj["metadata"]["name"] for file in files for obj in documents.load_all(file.read_text())
    ]
    assert rows == {f"`{name}`" for name in names}


def _objects() -> Iterator[Any]:
    for file in RBAC:
        yield from documents.load_all(file.read_text())


def _table(head: str) -> list[list[str]]:
    """Return the rows of the one table that begins so, without their outer bars."""
    lines = PAGE.partition(f"{head}\n")[2].partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _role(name: str, kind: str) -> str:
    return f"`{name}`{' (Role)' if kind == 'Role' else ''}"


def _words(values: Iterable[str]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def _rules(objs: Iterable[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each rule of these objects as a row of the page begins."""
    for obj in objs:
        for rule in obj.get("rules") or ():
            what = _words(rule.get("resources") or rule["nonResourceURLs"])
            if groups := [group for group in rule.get("apiGroups", ()) if group]:
                what += f" of {_words(groups)}"

            if names := rule.get("resourceNames"):
                what += f"; named {_words(names)}"

            role = _role(obj["metadata"]["name"], obj["kind"])
            yield role, what, ", ".join(rule["verbs"])


def test_the_page_has_every_rule_with_its_resources_and_verbs_and_no_other() -> None:
    there = set(_rules(_objects()))
    rows = _table("| Role | Resources | Verbs | For |")
    assert {tuple(row[:3]) for row in rows} == there
    assert len(rows) == len(there)
    assert all(row[3] for row in rows)


def test_the_page_has_every_right_that_there_is_where_the_agent_is_held_to_namespaces() -> None:
    objs = documents.load_all((RBAC[0].parents[1] / "scoped-rbac.yaml").read_text())
    rows = _table("| Role in that mode | Resources | Verbs | For |")
    assert {tuple(row[:3]) for row in rows} == set(_rules(objs))


def test_the_page_has_every_binding_and_no_other() -> None:
    there = set()
    for obj in _objects():
        if role := obj.get("roleRef"):
            name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace")
            where = f"in `{namespace}`" if namespace else "everywhere"
            accounts = [subject["name"] for subject in obj["subjects"]]
            there.add((f"`{name}`, {where}", _role(role["name"], role["kind"]), _words(accounts)))

    assert {tuple(row) for row in _table("| Binding | Role | Account |")} == there


def test_the_page_names_each_role_in_what_the_rules_come_to_or_who_is_bound_to_it() -> None:
    summary = "\n".join("|".join(row) for row in _table("| Account | May | File |"))
    bound = {obj["roleRef"]["name"] for obj in _objects() if "roleRef" in obj}
    for obj in _objects():
        labels = obj["metadata"].get("labels", {})
        added = any(label.startswith("rbac.authorization.k8s.io/aggregate") for label in labels)
        if obj["kind"] == "ClusterRole" and obj["metadata"]["name"] not in bound and not added:
            assert f"`{obj['metadata']['name']}`" in summary


def test_our_own_accounts_change_what_is_there_by_patches() -> None:
    """So rights to update are not needed, but to own what must not end before. Nor are others."""
    for obj in _objects():
        if obj["metadata"]["name"] not in ("vnode", "vnode-source-controller"):
            continue

        for rule in obj.get("rules") or ():
            needless = {"deletecollection"}
            if not all(resource.endswith("/finalizers") for resource in rule["resources"]):
                needless.add("update")

            assert not needless & set(rule["verbs"]), rule


def test_no_account_may_do_everything() -> None:
    """No wildcards, no escalation, and no binding to cluster-admin."""
    for obj in _objects():
        for rule in obj.get("rules") or ():
            assert all("*" not in words for words in rule.values()), rule
            assert not {"escalate", "impersonate"} & set(rule["verbs"]), rule
            if "bind" in rule["verbs"]:
                assert rule["resourceNames"], rule

        assert obj.get("roleRef", {}).get("name") != "cluster-admin"
