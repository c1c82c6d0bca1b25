"""The page of policies, as built from their objects, well-formed or hostile."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from tests.unit.dashboard.test_markup import HOSTILE, Reader
from tests.unit.dashboard.test_pages import ELEMENTS, NODE, PATHS, made
from tests.unit.insight.test_policies import OWNER, policy
from vnode.api.objects import Object
from vnode.dashboard import policies_page

WORKLOAD = f"job/default/{OWNER['name']}"


class Cells(Reader):
    """A reader that keeps the texts of a page apart."""

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"

    @property
    def words(self) -> list[str]:
        return self.text.split()


def page(*policies: Object, **more: Any) -> Cells:
    reader = Cells()
    reader.feed(policies_page.build(made(policies=list(policies), **more), PATHS).decode())
    reader.close()
    return reader


def workload(*targets: Object, **fields: Any) -> Object:
    return {"workload": WORKLOAD, "replicas": 5, "targets": list(targets), **fields}


def override(reason: str = "", message: str = "") -> Object:
    conditions = [
        {"type": "Accepted", "status": "True", "reason": "Valid"},
        {"type": "Applicable", "status": "False", "reason": reason, "message": message},
    ]
    return {
        "metadata": {"name": "mirror", "namespace": "team-a"},
        "spec": {"rules": [{}, {}]},
        "status": {"conditions": conditions if reason else conditions[:1]},
    }


def test_each_cluster_of_a_workload_has_a_row_by_the_name_of_its_target() -> None:
    parts = (
        {"cluster": NODE, "planned": 3, "running": 2, "waiting": 1},
        {"cluster": "gone", "running": 1},
    )
    shown = page(policy(workloads=[workload(*parts, unplaced=1)], workloadCount=3))
    assert "default/placementpolicy/web" in shown.text
    words = shown.words
    first = words.index(WORKLOAD)
    assert words[first : first + 7] == [WORKLOAD, "5", "default/c2", "3", "2", "1", "1"]
    assert words[first + 7 : first + 11] == ["gone", "-", "1", "0"]
    assert "2 more workloads" in shown.text


def test_a_policy_that_is_not_in_force_says_why_and_what_to_do() -> None:
    condition = {"status": "False", "reason": "UnknownCluster", "message": "create Target moon"}
    text = page(policy(condition=condition)).text
    assert "UnknownCluster" in text
    assert "Not in force: create Target moon" in text
    assert "No pods are placed by it." in text


def test_override_policies_are_shown_with_what_failed() -> None:
    words = page(overrides=[override("PatchFailed", "no such path")]).words
    assert "overridepolicy/team-a/mirror 2 PatchFailed no such path" in " ".join(words)
    assert "In force" in page(overrides=[override()]).text
    assert "Override policies" not in page().text


def test_what_may_not_be_read_is_said_on_this_page_only() -> None:
    assert "no right to read them" in page(policy_notices=("x: no right to read them",)).text


def test_rows_are_bounded_over_all_policies() -> None:
    parts = [{"cluster": f"n{number}", "running": 1} for number in range(200)]
    many = [policy(name, workloads=[workload(*parts)]) for name in "abc"]
    shown = page(*many)
    text = shown.text
    assert shown.words.count("-") == policies_page.MAX_ROWS
    assert "100 more rows" in text
    assert "200 more rows" in text


@settings(max_examples=30)
@given(HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    condition = {"status": "False", "reason": text, "message": text}
    entry = workload({"cluster": text, "planned": 1, "running": 1})
    hostile = policy(condition=condition, workloads=[{**entry, "workload": text}])
    hostile["metadata"] = {"name": text, "namespace": text}
    hostile["spec"]["mode"] = text
    shown = page(hostile, overrides=[override(text, text)], policy_notices=(text,))
    assert set(shown.elements) <= ELEMENTS
