"""Fills the cells of override policies that depend on more than one field. No I/O."""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object, Objects
from vnode.overrides import conditions, policy

NOT_COUNTED = "-"


def rules(obj: Object) -> str:
    """Return how many rules a policy has."""
    return str(len(objects.spec(obj).get("rules") or ()))


def selected_pods(obj: Object, pods: Objects | None) -> str:
    """Return how many live pods a policy selects, whatever targets its rules are for.

    `pods` is None if they were not read.
    """
    if pods is None:
        return NOT_COUNTED

    namespace, selecting = objects.namespace(obj), policy.parse(obj)
    found = (
        pod
        for pod in pods
        if namespace in ("", objects.namespace(pod))
        and not objects.is_finished(pod)
        and selecting.selects(objects.namespace(pod), objects.labels(pod))
    )
    return str(sum(1 for _pod in found))


def failure(obj: Object) -> str:
    """Return why the rules cannot be used, or else why they could not be applied to a pod."""
    for type_ in (conditions.ACCEPTED, conditions.APPLICABLE):
        condition = objects.condition(obj, type_) or {}
        if condition.get("status") == "False":
            return str(condition.get("message", ""))

    return ""
