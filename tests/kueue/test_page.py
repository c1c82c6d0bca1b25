"""What docs/kueue.md has users create is accepted by Kueue."""

from __future__ import annotations

import json

import pytest

from tests import pages
from tests.kit import ROOT, Fleet
from tests.pages import Block

PAGE = ROOT / "docs" / "kueue.md"
OBJECTS = [block for block in pages.blocks(PAGE) if "kueue.x-k8s.io/v1beta2" in block.text]
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}


@pytest.mark.parametrize("block", OBJECTS, ids=lambda block: block.file)
def test_objects_of_the_page_are_accepted(fleet: Fleet, block: Block) -> None:
    assert block.file
    fleet.kubectl("c1", "apply", "-f", "-", input=json.dumps(NAMESPACE))
    fleet.kubectl("c1", "create", "--dry-run=server", "-f", "-", input=block.text)
