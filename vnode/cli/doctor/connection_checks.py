"""Checks one connection, as the Target's own credentials see it. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from vnode import __version__
from vnode.api import cures, keys, objects, scheduler_silence
from vnode.cli.doctor import cluster_checks, consequences, profile_checks
from vnode.cli.doctor.facts import ConnectionFacts
from vnode.cli.doctor.findings import IN_THE_TEXT, Finding, Level, in_days
from vnode.runtime.link_health import OTHER_CLUSTER
from vnode.targets import cluster_identity, conditions, expiry, heartbeats, model
from vnode.targets.expiry import Renewal

_LATE: Final = timedelta(minutes=10)
"""How long after its time a token may be renewed before somebody has to look."""
_NAMED: Final = 5  # namespaces in a text
_CONNECT_AGAIN: Final = "run vnode connect again"
_SILENT: Final = (
    "start it; if Admiralty has replaced it, all is well, and this goes with "
    "vnode migrate --back --kubeconfig FILE, for that cluster"
)
_POLICIES: Final = (
    "bind ClusterRole vnode-source-network-policies there, and take annotation "
    f"{keys.NETWORK_POLICIES} off the Target"
)
_UNAUTHORIZED: Final = "Unauthorized: "
_LOST: Final = (
    "lost since {}: from then on count the tolerationSeconds of its pods, and failover of their "
    "placement policies"
)
_SAYS_ALL: Final = frozenset(
    (
        "NotInstalled",
        "NamespaceNotFound",
        "Forbidden",
        OTHER_CLUSTER,
        cluster_identity.SOURCE_ITSELF,
    )
)
"""Failures of which it follows that rights lack, and that the target's agent says nothing."""
_NOT_ADMIRALTYS: Final = frozenset({"get pods"})
"""What vnode's role admiralty-source allows, and Admiralty's of that name does not."""


def check(facts: ConnectionFacts) -> list[Finding]:
    """Return all findings about one Target, in the order in which a connection is made."""
    key = model.key_of(facts.target)
    place = f"target {key}"
    if facts.profile is not None:
        found = list(profile_checks.check(place, facts.profile))
    else:
        found = [Finding(place, "credentials", *_credentials(facts))]

    if facts.invalid:
        return found

    if not facts.tried:
        found += (Finding(place, name, *result) for name, result in _in_the_source(facts))
        return found

    has_ended = facts.end is not None and facts.end.at <= facts.now
    if has_ended and facts.failure.startswith(_UNAUTHORIZED):
        found.append(Finding(place, "connection", Level.SKIP, "the credentials have ended"))
    elif facts.failure:
        _reason, _colon, message = facts.failure.partition(": ")
        cure = IN_THE_TEXT if message else "see that the target's API server runs"
        found.append(Finding(place, "connection", Level.FAIL, facts.failure, cure))
    else:
        found.append(Finding(place, "connection", Level.OK, "it answers, and takes pods"))

    if facts.skew is not None:
        found.append(Finding(place, "clock", *cluster_checks.skew(facts.skew)))

    reason = facts.failure.partition(": ")[0]
    details = _in_the_source if reason in _SAYS_ALL else _details
    found += (Finding(place, name, *result) for name, result in details(facts))
    return found


def _granted(granted: dict[str, bool]) -> tuple[Level, str, str]:
    """Check where a connection may run pods whose ClusterSource selects namespaces."""
    missing = [name for name, allowed in granted.items() if not allowed]
    count = f"{len(granted) - len(missing)} of {len(granted)} namespaces that take part"
    if not missing:
        return Level.OK, f"it may run pods in {count}", ""

    text = f"it may run pods in {count}, not in {', '.join(missing[:_NAMED])}"
    level = Level.FAIL if len(missing) == len(granted) else Level.WARN
    return level, text, cures.grant(missing[0])


def _credentials(facts: ConnectionFacts) -> tuple[Level, str, str]:
    if facts.invalid:
        return Level.FAIL, facts.invalid, IN_THE_TEXT

    if objects.spec(facts.target).get("self"):
        return Level.OK, "none needed: it is this cluster itself", ""

    if facts.end is None:
        if facts.renewal and facts.renewal.failure:
            return Level.FAIL, f"vnode cannot renew them: {facts.renewal.failure}", IN_THE_TEXT

        return Level.OK, "their expiry is not known", ""

    text = f"the {facts.end.what} ends on {in_days(facts.end.at, facts.now)}"
    if facts.end.at <= facts.now:
        return Level.FAIL, text, _CONNECT_AGAIN

    if facts.renewal is not None:
        return _renewal(facts, facts.renewal, text)

    if facts.end.at - facts.now <= expiry.AHEAD:
        return Level.WARN, text, _CONNECT_AGAIN

    return Level.OK, text, ""


def _renewal(facts: ConnectionFacts, renewal: Renewal, text: str) -> tuple[Level, str, str]:
    """Judge credentials that the agent renews: by what we find, and by what it has found."""
    condition = objects.condition(facts.target, conditions.CREDENTIALS_LAST) or {}
    if renewal.failure:
        return Level.FAIL, f"{text}; vnode cannot renew it: {renewal.failure}", IN_THE_TEXT

    if condition.get("reason") == expiry.NOT_RENEWED:
        return Level.FAIL, str(condition.get("message", "")), IN_THE_TEXT

    assert renewal.at is not None, "a renewal has a time or a failure"
    if renewal.at + _LATE < facts.now:
        since = f"{text}; vnode has not renewed it since {renewal.at:%Y-%m-%d %H:%M} UTC"
        return Level.WARN, since, "see that the agent of the source runs; its log says more"

    return Level.OK, f"{text}; vnode renews it on {renewal.at:%Y-%m-%d %H:%M} UTC", ""


def _details(facts: ConnectionFacts) -> Iterator[tuple[str, tuple[Level, str, str]]]:
    runs_vnode = _runs_vnode(facts)
    denied = [right for right, allowed in facts.rights.items() if not allowed]
    if denied and not runs_vnode and set(denied) <= _NOT_ADMIRALTYS:
        text = "those of Admiralty's role, which has no kubectl attach and port-forward"
        yield "rights", (Level.OK, text, "")
    elif denied:
        cure = (
            "create a Source there (vnode connect does); its agent must run to bind it. If there "
            f"is one, its role has been changed: there, {cures.REPAIR}"
        )
        yield "rights", (Level.FAIL, f"it may not: {', '.join(denied)}", cure)
    elif facts.rights:
        yield "rights", (Level.OK, f"all {len(facts.rights)} that are needed", "")

    if facts.granted:
        yield "namespaces", _granted(facts.granted)

    yield from _there(facts)
    yield from _in_the_source(facts)


def _there(facts: ConnectionFacts) -> Iterator[tuple[str, tuple[Level, str, str]]]:
    """Check what the target's agent says of itself and of its candidate scheduler."""
    if facts.summary_missing:
        text = "it has no ClusterSummary: its agent has never run"
        yield "its agent", (Level.FAIL, text, "start vnode agent in the target")
    elif facts.summary is not None:
        version = objects.annotations(facts.summary).get(keys.AGENT_VERSION, "")
        if not version:
            yield "its agent", (Level.OK, "Admiralty's, not vnode's", "")
        elif not _runs_vnode(facts):
            text = f"vnode {version} has sent no heartbeat for minutes"
            yield "its agent", (Level.WARN, text, _SILENT)
        elif version != __version__:
            text = f"it is vnode {version}, this is {__version__}"
            yield "its agent", (Level.WARN, text, "use one version on both sides")
        else:
            yield "its agent", (Level.OK, f"vnode {version}; --target FILE tells more", "")

        if since := _scheduler_silent_since(facts):
            text = scheduler_silence.described(since)
            yield "its scheduler", (Level.FAIL, text, scheduler_silence.CURE)


def _runs_vnode(facts: ConnectionFacts) -> bool:
    """Tell whether the target's vnode has given a sign of life lately, by the target's clock."""
    now = facts.now + timedelta(seconds=facts.skew or 0)
    return heartbeats.is_recent(facts.summary or {}, now)


def _scheduler_silent_since(facts: ConnectionFacts) -> datetime | None:
    """Return since when the candidate scheduler is silent, if the target's vnode says so."""
    if not _runs_vnode(facts):
        return None

    return scheduler_silence.decode(
        objects.annotations(facts.summary or {}).get(keys.SCHEDULER_SILENT)
    )


def _condition(facts: ConnectionFacts) -> tuple[Level, str, str]:
    """Check the conditions Ready and Connected."""
    ready = objects.condition(facts.target, conditions.READY)
    if ready is None:
        cure = "start the agent of the source"
        return Level.FAIL, "no agent has reconciled the Target yet", cure

    if ready.get("status") == "True":
        return Level.OK, "ready", ""

    reason = str(ready.get("reason"))
    known = facts.failure.partition(": ")[0] == reason or (
        reason == scheduler_silence.REASON and _scheduler_silent_since(facts) is not None
    )
    more = "as above" if known else str(ready.get("message"))
    text = f"not ready: {reason}: {more}"
    connected = conditions.recorded(facts.target) or {}
    if connected.get("status") != "True":
        text += f"; {_LOST.format(connected.get('lastTransitionTime'))}"

    return Level.FAIL, text, IN_THE_TEXT


def _named(facts: ConnectionFacts) -> str:
    """Return the Target as commands take it, whatever the namespace of the kubeconfig."""
    key = model.key_of(facts.target)
    return f"{key.name} -n {key.namespace}" if key.namespace else key.name


def _in_the_source(facts: ConnectionFacts) -> Iterator[tuple[str, tuple[Level, str, str]]]:
    """Check the Target's conditions, its virtual node, and its namespace, in the source."""
    yield consequences.CONDITION, _condition(facts)
    allowed = objects.condition(facts.target, conditions.SELF_TARGET_ALLOWED) or {}
    if allowed.get("status") == "False":
        yield "rights here", (Level.WARN, str(allowed.get("message", "")), IN_THE_TEXT)

    unique = objects.condition(facts.target, conditions.CLUSTER_NAME_UNIQUE) or {}
    if unique.get("status") == "False":
        cure = "give one of the two agents another --cluster-name"
        yield "cluster name", (Level.FAIL, str(unique.get("message", "")), cure)

    if facts.node is None:
        yield "virtual node", (Level.FAIL, "not found", "start the agent of the source")
    elif objects.spec(facts.node).get("unschedulable"):
        yield "virtual node", (Level.WARN, "it is cordoned", f"vnode uncordon {_named(facts)}")

    if objects.annotations(facts.target).get(keys.NETWORK_POLICIES) == "ignore":
        text = "those of this cluster are not enforced for pods in the target"
        cure = f"have them follow: {_POLICIES}"
        yield "network policies", (Level.WARN, text, cure)

    taints = objects.condition(facts.node or {}, keys.MEMBER_TAINTS_SYNCED) or {}
    if taints.get("status") == "False":
        text = f"{taints.get('reason')}: {taints.get('message')}"
        yield "taints", (Level.WARN, text, IN_THE_TEXT)

    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    if facts.namespace_labels is not None and facts.namespace_labels.get(label) != value:
        name = objects.namespace(facts.target)
        text = f"its namespace {name} does not take part: no label {label}={value}"
        yield "namespace", (Level.WARN, text, f"kubectl label namespace {name} {label}={value}")
