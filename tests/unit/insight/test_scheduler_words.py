"""What kube-scheduler of any supported minor says against a pod has one cure, and the right one."""

from __future__ import annotations

import pytest

from tests.scheduler_words import WORDS
from tests.unit.cli import explained_pods
from vnode.insight import refusal_cures

SAID = [(text, cure) for words, cure in WORDS.items() for text in words]


@pytest.mark.parametrize(("text", "part"), SAID)
def test_what_kube_scheduler_says_has_its_cure_and_no_other(text: str, part: str) -> None:
    said = text.replace("%v", "cpu").replace("%s: %s", "dedicated: gpu")
    facts = explained_pods.facts(explained_pods.proxy(), explained_pods.target())
    line = f"0/3 nodes are available: 3 {said}."
    *cures, _again = refusal_cures.unschedulable({"c2": line}, facts)
    assert len(cures) == 1, cures
    assert part in cures[0]
