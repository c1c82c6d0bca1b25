"""Names the steps of a request, in order, as its conditions have them; builds its status. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from vnode.api import kinds, objects, status_conditions
from vnode.api.objects import Object

EXPIRED: Final = "Expired"
REVOKED: Final = "Revoked"


class IssueStep(enum.Enum):
    """The steps; each is a condition, and holds once it was done."""

    VALID = "AuthTokenRequestValid"
    ACCOUNT = "ServiceAccountFoundOrCreated"
    ROLES = "RoleFoundOrCreated"
    CLUSTER_ROLES = "ClusterRoleFoundOrCreated"
    ROLE_BINDINGS = "RoleBindingCreated"
    CLUSTER_ROLE_BINDINGS = "ClusterRoleBindingCreated"
    TOKEN = "ServiceAccountTokenRetrieved"  # noqa: S105 - the name of a condition


class StepFailed(Exception):
    """A step could not be done; `reason` and the message are for its condition."""

    def __init__(self, step: IssueStep, reason: str, message: str) -> None:
        super().__init__(message)
        self.step = step
        self.reason = reason


@dataclass(slots=True)
class IssueProgress:
    """What came of the steps that were gone: by condition, (holds, reason, message)."""

    outcomes: dict[str, tuple[bool, str, str]] = field(default_factory=dict)
    ends: datetime | None = None
    renew_at: datetime | None = None
    cluster_uid: str = ""  # of the cluster in which all steps were done

    def done(self, step: IssueStep, reason: str, message: str) -> None:
        """Note that a step was done."""
        self.outcomes[step.value] = (True, reason, message)

    def failed(self, failure: StepFailed) -> None:
        """Note why a step was not done."""
        self.outcomes[failure.step.value] = (False, failure.reason, str(failure))

    def note_end(self, now: datetime) -> None:
        """Note whether the token has ended; nothing if there has been none."""
        if self.ends is None:
            return

        when = objects.timestamp(self.ends)
        if now >= self.ends:
            self.outcomes[EXPIRED] = (True, "TokenEnded", f"the token expired at {when}")
        else:
            self.outcomes[EXPIRED] = (False, "TokenValid", f"the token expires at {when}")


def changed_status(obj: Object, progress: IssueProgress, now: datetime) -> Object:
    """Return what changes in the status of a request; empty if nothing does."""
    built = [
        status_conditions.build(obj, type_, *outcome, now)
        for type_, outcome in progress.outcomes.items()
    ]
    wanted: Object = {}
    if (conditions := status_conditions.merged(obj, *built)) is not None:
        wanted["conditions"] = sorted(conditions, key=_place)

    if progress.ends is not None:
        wanted["expirationTimestamp"] = objects.timestamp(progress.ends)
        wanted["tokenResponse"] = {
            "kind": kinds.SECRETS.kind,
            "namespace": objects.namespace(obj),
            "name": objects.name(obj),
        }

    if progress.renew_at is not None:
        wanted["renewAt"] = objects.timestamp(progress.renew_at)

    if progress.cluster_uid:
        wanted["clusterUID"] = progress.cluster_uid

    present = objects.status(obj)
    return {key: value for key, value in wanted.items() if present.get(key) != value}


_ORDER: Final = [*(step.value for step in IssueStep), EXPIRED, REVOKED]


def _place(condition: Object) -> int:
    type_ = condition.get("type")
    return _ORDER.index(type_) if type_ in _ORDER else len(_ORDER)
