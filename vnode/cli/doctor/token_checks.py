"""Checks AuthTokenRequests: whether they are carried out, and what each waits for. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import IN_THE_TEXT, Finding, Level, in_days
from vnode.insight import token_standing
from vnode.insight.token_standing import TokenStanding
from vnode.issuing.attempt import SECRETS_ROLE

ROLE: Final = "vnode-issuing"
"""The ClusterRole that lets the agent read requests, where an operator binds it."""
TARGET_ROLE: Final = "vnode-issuing-target"
"""The ClusterRole that lets a source make accounts in a target."""
_CHECK: Final = "issued tokens"
_LATE: Final = timedelta(minutes=10)  # a renewal that long after its time is one that fails
_TURN_ON: Final = (
    f"have the agent issue them: issuing.enabled of the chart, or bind ClusterRole {ROLE} and set "
    "issuing.enabled in the agent's configuration (docs/issued-tokens.md)"
)
_SEE_LOG: Final = "see the log of the agent that leads"
_CURES: Final = {
    "TargetNotFound": "create that Target, or delete the request and name another one",
    "InvalidTargetClusterProfile": "create a Target of that profile, or name another one",
    "AuthorMayNot": "give its author that right in this cluster; it is tried again in 5 min",
    "TargetUnreachable": "vnode get targets says why; it is tried again when the target answers",
    "RoleNotFound": "make that role in the target, or delete the request and give it rules",
    "Forbidden": f"in the target, bind ClusterRole {TARGET_ROLE} to the Target's account",
    "ServiceAccountMarkedForDeletion": "wait until it is gone: then it is made anew",
    "ServiceAccountNamespaceMarkedForDeletion": "wait until it is gone: then it is made anew",
    "AuthorUnknown": IN_THE_TEXT,
    "NotOurs": IN_THE_TEXT,
    "SecretNotOurs": IN_THE_TEXT,
    "TokenRefused": "see the target's API server, and the clocks of both clusters",
}


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield findings about the requests of a cluster; nothing where there are none."""
    if facts.unreachable:
        return

    requests, bound = facts.token_requests, facts.is_bound(ROLE)
    if requests is None:
        if bound:
            text = "AuthTokenRequests may not be read with these credentials, or their CRD is not "
            text += "there, which is in the line of CRDs"
            yield Finding(facts.name, _CHECK, Level.SKIP, text)

        return

    if requests and bound is False:
        # Once carried out, they may be so still: by an agent that has its rights otherwise.
        level = Level.FAIL if all(_is_unseen(facts, each) for each in requests) else Level.WARN
        text = f"nobody issues them: ClusterRole {ROLE} is bound to no agent"
        yield Finding(facts.name, _CHECK, level, text, _TURN_ON)
    elif requests or bound:
        known = "it is not known whether an agent issues them" if bound is None else "turned on"
        text = f"{known}; there are {len(requests)} AuthTokenRequests"
        yield Finding(facts.name, _CHECK, Level.SKIP if bound is None else Level.OK, text)

    for request in requests:
        yield _request(facts, request)


def _is_unseen(facts: ClusterFacts, request: Object) -> bool:
    return token_standing.read(request, facts.now).reason == token_standing.UNSEEN


def _request(facts: ClusterFacts, request: Object) -> Finding:
    name = f"token {objects.key(request)}"
    standing = token_standing.read(request, facts.now)
    if standing.reason == token_standing.UNSEEN:
        level = Level.WARN if facts.is_young(request) else Level.FAIL
        return Finding(facts.name, name, level, standing.message, _TURN_ON)

    if standing.reason == token_standing.REVOKING:
        cure = "see that the agent runs, with issuing turned on"
        return Finding(facts.name, name, Level.WARN, "it is deleted, and not revoked yet", cure)

    if standing.step:
        level = Level.WARN if standing.is_ready else Level.FAIL
        text = f"{standing.reason}: {standing.message}"
        if standing.is_ready and standing.ends:
            text += f"; the token that there is ends on {in_days(standing.ends, facts.now)}"

        return Finding(facts.name, name, level, text, _cure(request, standing))

    return _good(facts, name, standing)


def _cure(request: Object, standing: TokenStanding) -> str:
    """Return what to do; messages of revocations and about our own rights say it themselves."""
    if objects.is_terminating(request) or SECRETS_ROLE in standing.message:
        return IN_THE_TEXT

    return _CURES.get(standing.reason, _SEE_LOG)


def _good(facts: ClusterFacts, name: str, standing: TokenStanding) -> Finding:
    """Judge a token that is good, and of whose steps none has failed."""
    assert standing.ends is not None, "it is ready"
    text = f"it ends on {in_days(standing.ends, facts.now)}"
    renewal = standing.renew_at
    if renewal is not None and renewal + _LATE < facts.now:
        text += f"; it has not been renewed since {renewal:%Y-%m-%d %H:%M} UTC"
        cure = "see that the agent runs, with issuing turned on; its log says more"
        return Finding(facts.name, name, Level.WARN, text, cure)

    if renewal is not None:
        text += f"; vnode renews it on {renewal:%Y-%m-%d %H:%M} UTC"

    return Finding(facts.name, name, Level.OK, text)
