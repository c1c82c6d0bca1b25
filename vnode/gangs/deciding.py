"""Decides what is next for a gang: to wait, to bind its pods, or to give a target up. Pure."""

from __future__ import annotations

import enum
import re
from collections import Counter
from typing import Final

from vnode.api import enumeration, keys, objects
from vnode.gangs.gang import Gang
from vnode.gangs.members import GangMember
from vnode.gangs.pod_groups import GroupStanding

FIRST_REST: Final = 1.0  # seconds; doubled with each try in vain
LONGEST_REST: Final = 60.0
_LACKING: Final = re.compile(r"Insufficient [\w./-]*\w|Too many pods")
_SHOWN: Final = 3  # resources


class NextStep(enum.Enum):
    """What to do about the target that is tried."""

    WAIT = "wait"
    BIND = "bind"
    LEAVE = "leave"


def next_step(gang: Gang, minimum: int, now: float) -> NextStep:
    """Return what to do.

    A target is given up as soon as too few pods are left that may get a place there, unless it may
    grow, or some are bound there already: these are not left alone.
    """
    bound = len(gang.bound())
    if gang.is_started or bound + len(gang.ready) >= minimum:
        return NextStep.BIND

    if bound:
        return NextStep.WAIT

    left = len(gang.waiting()) - len(gang.refused)
    waits_for_growth = now < gang.grows_until and len(gang.waiting()) >= minimum
    return NextStep.LEAVE if left < minimum and not waits_for_growth else NextStep.WAIT


def rest(count: int, spread: float) -> float:
    """Return for how long a target is left alone that was tried so often in vain.

    `spread` is a random number from 0 to 1: gangs that were in each other's way do not meet again.
    """
    return float(min(FIRST_REST * 2 ** min(count - 1, 16), LONGEST_REST) * (0.5 + spread))


def is_short(gang: Gang, minimum: int | None) -> bool:
    """Tell whether a gang waits for pods that do not come, as these have done their work."""
    members = gang.members
    if gang.is_started or not minimum or not members.waiting:
        return False

    return members.present < minimum <= members.present + members.succeeded


def hold(gang: Gang, each: GangMember, standing: GroupStanding) -> str:
    """Return why a member may not be tried yet, with the cure; "" if it may."""
    if each.says.problem:
        return each.says.problem

    if keys.NO_RESERVATION in objects.annotations(each.pod):
        return (
            f"a pod of a gang needs a reservation: remove annotation {keys.NO_RESERVATION}, or "
            f"take the pod out of gang {gang.key}"
        )

    if gang.is_started:
        return ""

    if standing.problem or standing.minimum is None:
        return standing.problem or f"it is not known yet how many pods of gang {gang.key} it takes"

    missing = standing.minimum - gang.members.present
    if missing <= 0:
        return ""

    return f"waiting for {missing} of {standing.minimum} pods of the gang {gang.key}"


def annotated(gang: Gang) -> GroupStanding:
    """Return the standing of a gang whose pods say themselves how many start together."""
    numbers = gang.members.minimums
    if len(numbers) == 1:
        return GroupStanding(numbers[0])

    if not numbers:
        why = f"no pod of gang {gang.key} says how many start together"
        return GroupStanding(problem=f"{why}: set annotation {keys.GANG_MINIMUM} to a number")

    found = enumeration.some([str(number) for number in numbers], _SHOWN)
    why = f"pods of gang {gang.key} have different annotations {keys.GANG_MINIMUM} ({found})"
    return GroupStanding(problem=f"{why}: give all of them the same")


def tally(gang: Gang, target: str) -> str:
    """Return how many of a gang have a place in the target that is tried, and why others wait."""
    have = len(gang.ready) + len(gang.bound())
    count = gang.members.present
    reasons = Counter(map(lacking, gang.refused.values()))
    return counted(have, count, target, reasons.most_common(1)[0][0] if reasons else "")


def counted(have: int, count: int, target: str, why: str) -> str:
    """Return the sentence about a gang in a target."""
    waits = f"{count - have} wait" if count - have != 1 else "1 waits"
    return f"{have} of {count} have a place in {target}; {waits}" + (f": {why}" if why else "")


def lacking(reason: str) -> str:
    """Return what a target's scheduler says is missing, without its count of nodes."""
    found = list(dict.fromkeys(_LACKING.findall(reason)))
    return ", ".join(found) if found else reason
