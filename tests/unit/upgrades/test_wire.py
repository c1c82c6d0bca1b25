"""What versions of vnode write for each other: no change of it goes unnoticed, or breaks the other.

wire.txt is the list of this version, wire-before.txt that of the version before, with which
`make upgrades` tries it (`tests/upgrades/before.py` says which commit that is).
"""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests import kit
from tests.unit.upgrades import compatible, wire
from tests.unit.upgrades.compatible import Crds

PAGE: Final = kit.ROOT / "docs" / "upgrading.md"

CHANGED: Final = """what other versions of vnode, and users, read has changed: see the difference of
tests/unit/upgrades/wire.txt. Agents of the version before may run on the other side, or after a
rollback on this one. So say:
- what does an older agent make of it that does not know it? What does this one without it?
- does anything that runs differ from what this version would make anew, and is it left alone?
- is a field that the way back drops worth a line in docs/upgrading.md?
Then write the list anew, `python -m tests.unit.upgrades.wire`, and run `make upgrades`."""

HARMLESS: Final = {
    "clusterplacementpolicies.vnode.dev v1alpha1 .spec: has the new rule "
    "has(self.selector) || !has(self.joinable) || self.joinable": "joinable is new",
}
"""What could break stored objects, and does not; with the reason."""


@pytest.fixture(scope="module")
def now() -> Crds:
    return compatible.crds(wire.NOW.read_text())


@pytest.fixture(scope="module")
def before() -> Crds:
    return compatible.crds(wire.BEFORE.read_text())


def test_nothing_that_other_versions_read_changes_unnoticed():
    assert wire.NOW.read_text() == wire.listed(wire.SOURCES), CHANGED


def test_the_list_has_keys_and_fields():
    lines = wire.NOW.read_text().splitlines()
    assert 'key ELECT = "multicluster.admiralty.io/elect"' in lines
    assert (
        "crd targets.multicluster.admiralty.io v1alpha1 Namespaced served storage status" in lines
    )
    assert '  .spec.kubeconfigSecret.name {"type": "string"}' in lines


def test_objects_of_the_version_before_are_objects_of_this_one(before: Crds, now: Crds):
    assert set(compatible.breaks(before, now)) == set(HARMLESS), (
        "objects that are stored would be refused or lose fields: keep what there was, beside what "
        "is new, or serve another version of the kind"
    )


def test_the_page_names_all_that_the_way_back_drops(before: Crds, now: Crds):
    page = PAGE.read_text()
    dropped, refused = [], []
    for line in compatible.breaks(now, before):
        crd, _version, rest = line.split(maxsplit=2)
        if rest.endswith("is dropped"):
            [field] = re.findall(r"\.(spec\.[^.\[:]+|status)", rest)
            dropped.append((crd.partition(".")[0], field))
        elif rest == "is gone" or line.endswith(": is gone"):
            dropped.append((crd.partition(".")[0], ""))
        else:
            refused.append(line)

    assert not refused, "an agent of the version before could not change such objects"
    for kind, field in dropped:
        if field != "status":
            assert re.search(rf"{kind}.*`{field or kind}`|`{kind}.*{field}`", page), (kind, field)


def test_keys_of_the_version_before_still_mean_something(before: Crds):
    def keys(listed: str) -> set[str]:
        return {line.partition(" = ")[2] for line in listed.splitlines() if line.startswith("key ")}

    assert keys(wire.BEFORE.read_text()) <= keys(wire.NOW.read_text())


STORED: Final = """crd a.b v1 Cluster served storage status
  . {"type": "object"}
  .spec {"type": "object"}
  .spec.mode {"enum": ["A", "B"], "type": "string"}
  .spec.size {"maximum": 5, "type": "integer"}
"""


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("", ""), []),
        (("served ", ""), ["a.b v1 : is no longer served"]),
        (("Cluster", "Namespaced"), ["a.b v1 : scope Cluster is Namespaced"]),
        (("crd a.b v1", "crd a.b v2"), ["a.b v1: is gone"]),
        ((', "B"', ""), ["a.b v1 .spec.mode: does not take B"]),
        (('["A", "B"]', '["A", "B", "C"]'), []),
        (('"maximum": 5', '"maximum": 4'), ["a.b v1 .spec.size: maximum 5 is 4"]),
        (('"maximum": 5', '"maximum": 6'), []),
        (('"maximum": 5, ', '"minimum": 1, '), ["a.b v1 .spec.size: minimum None is 1"]),
        (("integer", "string"), ["a.b v1 .spec.size: type integer is string"]),
        (
            ('"integer"}', '"integer"}\n  .spec.new {"required": true, "type": "string"}'),
            ["a.b v1 .spec.new: is required, and stored objects lack it"],
        ),
        (('"integer"}', '"integer"}\n  .spec.new {"type": "string"}'), []),
        (('"string"}', '"string", "pattern": "x"}'), ["a.b v1 .spec.mode: pattern None is x"]),
        (('  .spec.size {"maximum": 5, "type": "integer"}', ""), ["a.b v1 .spec.size: is dropped"]),
        (
            ('.spec {"type": "object"}', '.spec {"rules": ["has(self.x)"], "type": "object"}'),
            ["a.b v1 .spec: has the new rule has(self.x)"],
        ),
    ],
)
def test_what_breaks_stored_objects_is_found(change: tuple[str, str], found: list[str]):
    old, new = change
    assert old in STORED
    stored, read = compatible.crds(STORED), compatible.crds(STORED.replace(old, new, 1))
    assert list(compatible.breaks(stored, read)) == found
