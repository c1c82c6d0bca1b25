"""docs/security.md names a test for each threat, and every right that an account has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

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
    for obj in yaml.safe_load_all(file.read_text()):
        if obj["kind"] == "ServiceAccount":
            assert f"`{obj['metadata']['name']}`" in PAGE


def test_no_account_may_do_everything() -> None:
    """No wildcards, no escalation, and no binding to cluster-admin."""
    for file in RBAC:
        for obj in yaml.safe_load_all(file.read_text()):
            for rule in obj.get("rules") or ():
                assert all("*" not in words for words in rule.values()), rule
                assert not {"escalate", "impersonate"} & set(rule["verbs"]), rule
                if "bind" in rule["verbs"]:
                    assert rule["resourceNames"], rule

            assert obj.get("roleRef", {}).get("name") != "cluster-admin"
