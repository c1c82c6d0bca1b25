"""What `vnode explain` says of pods that no target takes: the cause first, and nothing besides.

Of each prepared failure the headline is the cause of the target that the pod came nearest to. The
cures are those of causes: none is for a target that the pod itself leaves out, and none for what
only follows from the cause.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest

from tests.unit.cli.explained_pods import chaperon, facts, proxy, refused, target
from vnode.api import keys
from vnode.api.target_key import TargetKey
from vnode.insight import judging, nearest, story
from vnode.insight.facts import TargetFacts
from vnode.insight.verdicts import PodState
from vnode.scheduling import diagnosis

LEFT_OUT: Final = "didn't match Pod's node affinity/selector"
NOISE: Final = (
    ". no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not "
    "helpful for scheduling"
)
FULL: Final = "0/3 nodes are available: 3 Insufficient cpu"
UNALLOCATED: Final = "0/3 nodes are available: 3 cannot allocate all claims"
NO_SECRET: Final = (
    "there is no Secret 'vnode-target-c2' in namespace 'default': create it with the target's "
    "kubeconfig (vnode connect does)"
)
SILENT: Final = (
    "no answer for 30 s (check that the agent and the candidate scheduler of the target run)"
)
DEAD: Final = (
    'Internal error occurred: failed calling webhook "dead.example.com": failed to call webhook: '
    'Post "https://10.0.0.1:1/x?timeout=3s": connect: connection refused'
)
OVERRIDE: Final = "overridepolicy/default/bad, rules[0]: patches[0]: there is no /spec/containers/5"
MAXIMUM: Final = "at its maximum of 1 by placementpolicy/max; waiting for c2"


class Case(NamedTuple):
    """What targets say, and what must, and must not, be said of it."""

    reasons: dict[str, str]
    headline: str
    cures: tuple[str, ...]
    unsaid: tuple[str, ...] = ()
    target: dict[str, Any] = {}  # noqa: RUF012 - never changed
    more: dict[str, Any] = {}  # noqa: RUF012


COMPARE: Final = "compare its constraints"
CASES: Final = {
    "full, and the other left out": Case(
        {"c2": FULL, "c3": LEFT_OUT}, f"c2: {FULL}", ("add nodes",), (COMPARE, LEFT_OUT)
    ),
    "all left out": Case({"c2": LEFT_OUT, "c3": LEFT_OUT}, f"c2, c3: {LEFT_OUT}", (COMPARE,)),
    "preemption is noise": Case(
        {"c2": FULL + NOISE, "c3": LEFT_OUT}, f"c2: {FULL}", ("add nodes",), ("preemption",)
    ),
    "claims are noise": Case(
        {"c2": f"{UNALLOCATED}. still not schedulable{NOISE}"},
        f"c2: {UNALLOCATED}",
        ("add devices",),
        ("still not schedulable",),
    ),
    "its Secret is gone": Case(
        {"c2": NO_SECRET, "c3": LEFT_OUT},
        f"c2: {NO_SECRET}",
        ("vnode connect --source FILE --target FILE --name c2",),
        (COMPARE,),
    ),
    "nobody answers": Case(
        {"c2": SILENT, "c3": LEFT_OUT},
        "c2: no answer for 30 s",
        ("candidate scheduler",),
        (COMPARE,),
    ),
    "full is nearer than silent, and both are told": Case(
        {"c2": SILENT, "c3": FULL}, f"c3: {FULL}", ("add nodes", "candidate scheduler")
    ),
    "a plan wants the one that is full": Case(
        {"c2": FULL, "c3": "planned elsewhere by placementpolicy/web: 0 of 2 here"},
        f"c2: {FULL}",
        ("add nodes",),
    ),
    "the maximum is reached": Case(
        {"c2": MAXIMUM, "c3": "didn't match placementpolicy/max"},
        "c2: at its maximum of 1 by placementpolicy/max",
        ("raise maxReplicas, 1, of c2 in placementpolicy/max",),
    ),
    "an override is refused": Case(
        {"c2": OVERRIDE},
        f"c2: {OVERRIDE}",
        ("correct that rule (kubectl edit overridepolicy/bad -n default)",),
    ),
    "an override of all namespaces is refused": Case(
        {"c2": OVERRIDE.replace("overridepolicy/default", "clusteroverridepolicy")},
        "c2: clusteroverridepolicy/bad",
        ("correct that rule (kubectl edit clusteroverridepolicy/bad)",),
    ),
    "a webhook is dead": Case(
        {"c2": DEAD, "c3": LEFT_OUT},
        f"c2: {DEAD}",
        ("webhook dead.example.com of c2 does not answer",),
        ("the text names what refuses it",),
    ),
    "nodes are tainted": Case(
        {"c2": "0/3 nodes are available: 3 node(s) had untolerated taint(s)" + NOISE},
        "c2: 0/3 nodes are available: 3 node(s) had untolerated taint(s)",
        ("toleration for the taints of the nodes of c2 ({a: b})",),
        ("uncordon",),
        {"taints": ("{a: b}",)},
    ),
    "nodes are cordoned": Case(
        {"c2": "0/3 nodes are available: 3 node(s) were unschedulable"},
        "c2: 0/3 nodes",
        ("uncordon the nodes of c2",),
        ("toleration",),
    ),
    "the virtual node is tainted": Case(
        {"c2": "had untolerated taint {a: b}"},
        "c2: had untolerated taint",
        ("taint of the virtual node",),
        ("nodes of c2",),
    ),
    "neither cluster has the claim": Case(
        {"c2": '0/3 nodes are available: persistentvolumeclaim "data" not found. not found'},
        'c2: 0/3 nodes are available: persistentvolumeclaim "data" not found',
        ("create PersistentVolumeClaim data in namespace default of c2, which this cluster lacks",),
        more={"lacking_claims": frozenset({"data"})},
    ),
    "the target lacks the claim": Case(
        {"c2": 'persistentvolumeclaim "data" not found'},
        "c2: persistentvolumeclaim",
        ("create PersistentVolumeClaim data in namespace default of c2",),
        ("which this cluster lacks",),
    ),
}


def made(case: Case) -> Any:
    line = diagnosis.explain(
        {TargetKey("default", name): text for name, text in case.reasons.items()}, "default"
    )
    targets = [target(name, **(case.target if name == "c2" else {})) for name in case.reasons]
    return facts(proxy(conditions=refused(line)), *targets, **case.more)


@pytest.mark.parametrize("name", CASES)
def test_the_headline_is_the_cause_and_each_cure_is_for_it(name: str) -> None:
    case = CASES[name]
    verdict = judging.judge(made(case))
    assert verdict.state is PodState.UNSCHEDULABLE
    assert verdict.text.startswith(case.headline)
    *cures, again = verdict.cures
    assert "tried again by itself" in again
    assert len(cures) == len(case.cures)
    for expected in case.cures:
        assert any(expected in cure for cure in cures), cures

    for unsaid in case.unsaid:
        assert unsaid not in " ".join((verdict.text, *verdict.cures))


@pytest.mark.parametrize("asks", [True, False])
def test_a_claim_that_follows_is_made_here_or_has_not_followed(asks: bool) -> None:
    case = CASES["the target lacks the claim"]
    known = made(case._replace(more={"lacking_claims": frozenset({"data"} if asks else ())}))
    followed = {keys.STORAGE_CLASSES: "fast=ssd"}
    there = known.targets[0]
    obj = {**there.target, "metadata": {**there.target["metadata"], "annotations": followed}}
    first, _again = judging.judge(replace(known, targets=(replace(there, target=obj),))).cures
    expected = "of this cluster, from where it follows" if asks else "has not followed to c2"
    assert expected in first


def test_words_of_the_candidate_are_nearer_than_the_condition_which_may_be_old() -> None:
    there: TargetFacts = target("c2", chaperon=chaperon(message=FULL + NOISE))
    known = facts(proxy(conditions=refused(f"0/1 targets: c2: {LEFT_OUT}")), there)
    assert judging.judge(known).text == f"c2: {FULL}"


def test_targets_that_are_left_out_are_told_as_such_in_the_story() -> None:
    known = made(CASES["full, and the other left out"])
    chapters = {chapter.title: chapter.lines for chapter in story.build(known).chapters}
    assert any(LEFT_OUT in line.text for line in chapters["Target default/c3"])


@pytest.mark.parametrize(
    ("why", "cure"), [(NO_SECRET, "vnode connect"), ("cannot be reached", "vnode doctor")]
)
def test_the_only_target_that_is_not_ready_is_the_headline(why: str, cure: str) -> None:
    verdict = judging.judge(facts(proxy(), target(ready=False, why=why)))
    assert verdict.text == f"target c2 is not ready: {why}"
    assert cure in verdict.cures[0]


def test_a_target_that_is_not_ready_is_further_than_one_that_is_asked() -> None:
    reasons = {"c2": "cannot be reached", "c3": "Insufficient cpu"}
    found = nearest.relevant(reasons, {"c2": False, "c3": True})
    assert list(found) == ["c3", "c2"]
