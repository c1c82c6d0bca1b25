"""The lists of the conformance suite, as they are in the project."""

from __future__ import annotations

from pathlib import Path

import yaml

from hack.fleetlib.conformance import (
    arrange,
    selection,
)
from vnode.api import keys

PAGE = Path(__file__).parents[3] / "docs" / "conformance.md"


def test_each_group_of_the_project_has_a_name_of_its_own():
    names = [group.name for group in selection.groups(selection.SPECS.read_text())]
    assert len(names) == len(set(names)) > 10
    assert names[-1] == "cli"


def test_the_lists_of_the_project_can_be_read():
    text = selection.SPECS.read_text()
    assert selection.specs(text).focus
    assert selection.specs(text, "short").focus
    assert selection.specs(text, "brief").focus
    selection.differences(selection.DIFFERENCES.read_text())


def test_the_page_has_the_reason_of_each_expected_difference():
    page = " ".join(PAGE.read_text().split())
    for entry in selection.differences(selection.DIFFERENCES.read_text()):
        assert entry.reason in page, entry


def test_the_policies_use_the_words_of_the_product():
    text = arrange.POLICIES.read_text()
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    assert f'"{label}": "{value}"' in text
    assert f'"{keys.ELECT}": ""' in text
    assert f"'{keys.PROVIDER_TAINT['key']}'" in text
    names = [policy["metadata"]["name"] for policy in yaml.safe_load_all(text)]
    assert len(set(names)) == 2
