"""Situations of pods that are bound to a target, and have no delegate there."""

from __future__ import annotations

from typing import Final

from tests.unit.cli.explained_pods import NODE
from tests.unit.cli.situation_cases import Case
from tests.unit.cli.situations import Situation
from vnode.api import keys
from vnode.insight.verdicts import PodState

OFF: Final = "delete the pod, and keep it off that node"


def unsent(message: str, headline: str, *cures: str, unsaid: tuple[str, ...] = ()) -> Case:
    """Return the case of a pod of which an Event tells why it was not sent."""

    def make(here: Situation) -> None:
        here.pod(node=NODE)
        here.event("DelegateRefused", message)

    return Case(make, PodState.NOT_STARTING, f"the pod is not sent: {headline}", cures, unsaid)


def deleted_there(here: Situation) -> None:
    here.pod(node=NODE)
    marks = {keys.IS_RESERVED: "true", keys.IS_ALLOWED: "true"}
    here.chaperon({**marks, keys.POD_MISSING_SINCE: here.ago(20)})


UNSENT: Final[dict[str, Case]] = {
    "a quota that refuses a pod that is bound": unsent(
        'target c2 refused the pod: pods "web" is forbidden: exceeded quota: team, requested: '
        "pods=1, used: pods=5, limited: pods=5",
        "target c2 refused the pod",
        "kubectl edit resourcequota team -n default",
        OFF,
    ),
    "an override that refuses a pod that is bound": unsent(
        "the pod is not sent to target default/c2: overridepolicy/default/fix, rules[0]: "
        "patches[0]: there is no /spec/foo",
        "overridepolicy/default/fix, rules[0]",
        "correct that rule (kubectl edit overridepolicy/fix -n default)",
        OFF,
    ),
    "a namespace without the label, whose pod is bound": unsent(
        keys.not_enabled("default"),
        "namespace default does not have the label",
        "keep the pod off virtual nodes",
        "kubectl label namespace default multicluster-scheduler=enabled",
        unsaid=("NAMESPACE",),
    ),
    "a delegate that was deleted in its target": Case(
        deleted_there,
        PodState.NOT_STARTING,
        "the delegate pod in target c2 was deleted there",
        ("for its owner to replace it",),
        ("start the agent",),
    ),
}
