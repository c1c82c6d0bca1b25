"""Chooses the PriorityClass that a delegate names in its target. No I/O.

The API server of the target computes a pod's priority from its class, and refuses a pod that says
otherwise. So a priority travels as the name of a class: one that the Target's map names, else the
pod's own name, else, where the target lacks that, its class of the nearest value that is no higher.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from vnode.api import class_names, names
from vnode.api.class_names import ClassNames
from vnode.api.objects import Object

NEVER: Final = "Never"
NAME: Final = "priorityClassName"
POLICY: Final = "preemptionPolicy"

_BUILT_IN: Final = "system-"  # of every cluster: its classes are for its own components


@dataclass(frozen=True, slots=True)
class ClassChoice:
    """The class of a delegate, "" for none; `refusal` says why its target would refuse the pod."""

    name: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class PriorityMapping:
    """What stands for the source's PriorityClasses in one target.

    `pairs` is the Target's own map of names, where "" stands for no class on either side.
    """

    pairs: Mapping[str, str] = field(default_factory=dict)
    classes: ClassNames = class_names.UNKNOWN

    def choose(self, spec: Object) -> ClassChoice:
        """Return the class of the delegate of a pod of this spec.

        A class that preempts is never one for a pod that must not.
        """
        own = str(spec.get(NAME) or "")
        chosen = self.pairs.get(own, own)
        present, never = self.classes.priority_classes, spec.get(POLICY) == NEVER
        if not chosen or chosen.startswith(_BUILT_IN) or present is None:
            return ClassChoice(chosen)

        if chosen in present:
            return ClassChoice(chosen, self._preempts(chosen) if never else "")

        is_mapped = own in self.pairs
        if not is_mapped and (near := self._nearest(int(spec.get("priority") or 0), never=never)):
            return ClassChoice(near)

        pods = f' for pods of "{own}"' if own else " for pods without one"
        wanted = f'"{chosen}"' + (pods if is_mapped else "")
        return ClassChoice(chosen, f"PriorityClass {wanted} not found: create it in the target")

    def translate(self, spec: Object) -> None:
        """Put into a spec, the caller's own, what its class is in the target, and no value.

        That a pod may preempt others is for its class to say there. That it must not travels, so
        that a target refuses the pod rather than let it preempt.
        """
        chosen = self.choose(spec).name
        for name in (NAME, "priority"):
            spec.pop(name, None)

        if chosen:
            spec[NAME] = chosen

        if spec.get(POLICY) != NEVER:
            spec.pop(POLICY, None)

    def _preempts(self, name: str) -> str:
        known = self.classes.priorities.get(name)
        if known is None or known.never:
            return ""

        return (
            f'PriorityClass "{name}" preempts in the target, and the pod must not: map its class '
            f"to one with preemptionPolicy {NEVER}"
        )

    def _nearest(self, priority: int, *, never: bool) -> str:
        """Return the class of the highest value up to `priority`, the first by name; or ""."""
        fitting = [
            (-each.value, name)
            for name, each in self.classes.priorities.items()
            if each.value <= priority
            and each.never == never
            and not name.startswith(_BUILT_IN)
            and names.SUBDOMAIN.fullmatch(name)
        ]
        return min(fitting)[1] if fitting else ""


BY_NAME: Final = PriorityMapping()
