"""What is wrong stands on top of the first page, in the words of `vnode explain`, each once."""

from __future__ import annotations

from typing import Any

from tests.unit.dashboard.test_markup import read
from tests.unit.dashboard.test_pages import NODE, PATHS, made, pod, refused, target, waiting
from vnode.api.objects import Object
from vnode.dashboard import overview
from vnode.dashboard.troubles import FoundTrouble
from vnode.insight import judging
from vnode.insight.facts import Facts, TargetFacts
from vnode.pods.source.candidates import CandidateState
from vnode.targets import model

LONG_AGO = "2026-01-02T01:00:00Z"
REFUSAL = "0/1 targets: c2: 0/4 nodes are available: 4 Insufficient cpu"


def old(name: str, **more: Any) -> Object:
    return pod(name, **more, metadata={"creationTimestamp": LONG_AGO})


def found(pods: list[Object] = (), **more: Any) -> tuple[FoundTrouble, ...]:  # type: ignore[assignment]
    return made(pods, **more).troubles


def with_condition(type_: str, reason: str, message: str = "") -> Object:
    """Return a target that is ready, and of which one more condition does not hold."""
    whole = target()
    condition = {"type": type_, "status": "False", "reason": reason, "message": message}
    whole["status"]["conditions"].append(condition)
    return whole


def test_nothing_is_wrong_where_all_runs() -> None:
    view = made([pod("runs", NODE, "Running")])
    assert view.troubles == ()
    assert "Needs attention" not in overview.build(view, PATHS).decode()


def test_a_target_that_is_not_ready_comes_first_with_its_cure_and_its_pods_are_not_told() -> None:
    pods = [pod("runs", NODE, "Running"), old("waits", conditions=refused(REFUSAL))]
    lost, waits = found(pods, targets=[target(ready=False, message="no route to host")])
    assert (lost.target, lost.state, lost.text) == ("default/c2", "Some", "no route to host")
    assert lost.cures == ("vnode doctor checks both sides of each connection",)
    assert waits.pod == "default/waits"


def test_the_words_are_those_of_explain() -> None:
    waits = old("waits", conditions=refused(REFUSAL))
    view = made([waits])
    verdict = judging.judge(
        Facts(waits, view.now, targets=(TargetFacts(model.key_of(target()), target()),))
    )
    [told] = view.troubles
    assert (told.state, told.text) == (verdict.state.value, verdict.text)
    assert told.text == "c2: 0/4 nodes are available: 4 Insufficient cpu"


def test_pods_of_which_the_same_is_true_are_one_line_that_leads_to_them() -> None:
    pods = [old(f"waits-{number}", conditions=refused(REFUSAL)) for number in range(3)]
    [told] = found(pods)
    assert (told.count, told.pod) == (3, "default/waits-0")
    html = overview.build(made(pods), PATHS).decode()
    assert "3 pods of default" in read(html).text
    assert "/base/pods?namespace=default&amp;stage=pending" in html


def test_pods_that_fail_are_told_and_pods_that_start_are_not() -> None:
    crash = pod("crash", NODE, "Running", containerStatuses=[waiting("CrashLoopBackOff")])
    [told] = found([crash, pod("starts", NODE)])
    assert (told.state, told.stage) == ("Crashing", "failing")


def test_a_pod_that_waits_for_its_turn_is_told_after_a_while_and_what_is_held_is_no_fault() -> None:
    new = pod("new", metadata={"creationTimestamp": "2026-01-02T03:04:00Z"})
    asked = {"asked": {NODE: CandidateState.WAITING}}
    held = old("held")
    held["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
    told = found([new, old("asked"), held], candidates=asked)
    assert {each.pod: each.is_bad for each in told} == {
        "default/asked": False,
        "default/held": False,
    }


def test_what_explain_would_say_of_another_namespace_is_not_said() -> None:
    secret = target("secret", ready=False, message="hidden")
    secret["metadata"]["namespace"] = "elsewhere"
    told = found([old("waits", conditions=refused(REFUSAL))], targets=[target(), secret])
    assert [each.text for each in told if each.pod] == [
        "c2: 0/4 nodes are available: 4 Insufficient cpu"
    ]


def test_credentials_that_end_are_told_and_that_a_target_runs_admiralty_is_not() -> None:
    [told] = found(targets=[with_condition("CredentialsLast", "Ending", "ends tomorrow")])
    assert (told.is_bad, told.text) == (False, "ends tomorrow")
    assert found(targets=[with_condition("Agent", "NotVnode")]) == ()


def test_an_agent_that_does_not_run_is_the_first_trouble() -> None:
    lease = {"spec": {"holderIdentity": "a", "renewTime": LONG_AGO, "leaseDurationSeconds": 15}}
    first, *_rest = found(targets=[target(ready=False)], lease=lease)
    assert first.text == "the agent of this cluster does not run"
    alive = {"spec": {**lease["spec"], "renewTime": "2026-01-02T03:04:00Z"}}
    assert found(lease=alive) == ()


def test_a_thousand_troubles_are_cut() -> None:
    pods = [old(f"p{n}", conditions=refused(f"0/1 targets: c2: no {n}")) for n in range(1000)]
    assert len(found(pods)) == 200
    assert "and 188 more" in read(overview.build(made(pods), PATHS).decode()).text
