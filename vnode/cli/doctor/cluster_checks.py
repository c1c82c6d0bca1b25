"""Checks one cluster: makes findings of its facts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from vnode import __version__
from vnode.api import keys, kinds, lease_holders, objects
from vnode.api.objects import Object, Objects
from vnode.cli import manifests, scoped_rights
from vnode.cli.doctor import consequences, cures, endpoint_checks, scope_checks
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import IN_THE_TEXT, Finding, Level, Result
from vnode.insight import status_text
from vnode.targets import source_rbac

SKEW_WARN: Final = 5.0  # seconds; less can be due to the network and to rounding
SKEW_FAIL: Final = 60.0  # seconds; tokens and certificates begin to be refused
_MAX_WAIT: Final = timedelta(seconds=15)  # for a running scheduler to look at a pod


def check(facts: ClusterFacts) -> list[Finding]:
    """Return all findings about one cluster, the most basic first."""
    if facts.unreachable:
        cure = "see that the API server runs, and the kubeconfig's address and credentials"
        return [Finding(facts.name, "reachable", Level.FAIL, facts.unreachable, cure)]

    found = [Finding(facts.name, "reachable", Level.OK, f"Kubernetes {facts.version}")]
    checks: list[tuple[str, Result | None]] = [
        (endpoint_checks.CLOCK, skew(facts.skew)),
        ("CRDs", _crds(facts)),
        ("agent's rights", _roles(facts)),
        ("agent's policies", _policies(facts)),
        (consequences.AGENT, _agent(facts)),
    ]
    if facts.targets:
        checks += [
            (consequences.WEBHOOK, endpoint_checks.webhook(facts)),
            (endpoint_checks.CERTIFICATE, endpoint_checks.serving(facts)),
            (endpoint_checks.ADMISSION, endpoint_checks.admission(facts)),
        ]
    elif not facts.sources:
        text = "it has no Target and no Source: it neither sends nor receives pods"
        checks.append(("connections", (Level.WARN, text, "vnode connect makes one")))

    if facts.sources or facts.chaperons or facts.waiting or facts.scheduler_lease:
        checks.append(("candidate scheduler", _scheduler(facts)))

    found += [Finding(facts.name, name, *result) for name, result in checks if result]
    found += _sources(facts)
    found += endpoint_checks.kubelets(facts)
    found += _namesakes(facts)
    found += scope_checks.check(facts)
    return found


def skew(seconds: float | None) -> Result:
    """Check a clock that is this many seconds ahead of ours."""
    if seconds is None:
        return Level.SKIP, "the API server sends no header Date", ""

    direction = "ahead of" if seconds > 0 else "behind"
    text = f"{abs(seconds):.0f} s {direction} this machine's"
    cure = "let NTP set the clocks of both machines"
    if abs(seconds) >= SKEW_FAIL:
        return Level.FAIL, text, cure

    return (Level.WARN, text, cure) if abs(seconds) >= SKEW_WARN else (Level.OK, "as ours", "")


def contains(present: Any, wanted: Any) -> bool:
    """Tell whether all fields of a manifest are present; fields of the server are ignored."""
    if isinstance(wanted, Mapping):
        return isinstance(present, Mapping) and all(
            contains(present.get(key), value) for key, value in wanted.items() if value != {}
        )

    if isinstance(wanted, list):
        return (
            isinstance(present, list)
            and len(present) == len(wanted)
            and all(map(contains, present, wanted))
        )

    return bool(present == wanted)


def _crds(facts: ClusterFacts) -> Result:
    if facts.crds is None:
        return Level.SKIP, "may not be read with these credentials", ""

    return _compared(
        manifests.crds(), facts.crds, "spec", _are_served(facts.crds), cures.install(facts)
    )


def _are_served(crds: Objects) -> str:
    for crd in crds:
        condition = objects.condition(crd, "Established") or {}
        if condition.get("status") != "True":
            return f"{objects.name(crd)} is not established"

    return ""


def _roles(facts: ClusterFacts) -> Result:
    if facts.roles is None:
        return Level.SKIP, "may not be read with these credentials", ""

    named = facts.scope.named if facts.scope else ()
    wanted = [
        obj
        for obj in manifests.rbac(manifests.NAMESPACE, named)
        if manifests.kind_of(obj) is kinds.CLUSTER_ROLES
        and not (named and objects.name(obj) in scoped_rights.OPTIONAL)
    ]
    return _compared(wanted, facts.roles, "rules", "", cures.install(facts))


def _policies(facts: ClusterFacts) -> Result | None:
    """Check the policies that hold the agent's account; older versions of Kubernetes have none."""
    if facts.policies is None:
        return None

    wanted = [
        obj
        for obj in manifests.policies(facts.namespace)
        if manifests.kind_of(obj) is kinds.VALIDATING_POLICIES
    ]
    level, text, cure = _compared(wanted, facts.policies, "spec", "", cures.install(facts))
    return (Level.OK if level is Level.OK else Level.WARN), text, cure


def _compared(wanted: Objects, present: Objects, field: str, trouble: str, cure: str) -> Result:
    known = {objects.name(obj): obj for obj in present}
    missing = [objects.name(obj) for obj in wanted if objects.name(obj) not in known]
    if missing:
        return Level.FAIL, f"missing: {', '.join(missing)}", cure

    if trouble:
        return Level.FAIL, trouble, "kubectl describe crd says why"

    other = [
        objects.name(obj)
        for obj in wanted
        if not contains(known[objects.name(obj)].get(field), obj.get(field))
    ]
    if other:
        return (
            Level.WARN,
            f"not as vnode {__version__} has them: {', '.join(other)}",
            f"{cure} (with the version that the agent has)",
        )

    return Level.OK, f"{len(wanted)}, as vnode {__version__} has them", ""


def _agent(facts: ClusterFacts) -> Result:
    if not facts.may_read_leases:
        return Level.SKIP, "its lease may not be read with these credentials", ""

    cure = "start vnode agent in this cluster; --agent-namespace if it is not in vnode"
    if facts.agent_lease is None:
        return Level.FAIL, "it has never run here: there is no lease", cure

    text, alive = lease(facts.agent_lease, facts)
    if not alive:
        return Level.FAIL, f"it does not run: {text}", cure

    version = objects.annotations(facts.summary or {}).get(keys.AGENT_VERSION, "")
    if version and version != __version__:
        return Level.WARN, f"it is vnode {version}, this is {__version__}", "use one version"

    return Level.OK, text, ""


def lease(obj: Object, facts: ClusterFacts) -> tuple[str, bool]:
    """Describe a Lease, and tell whether its holder is alive, by the cluster's own clock."""
    spec = objects.spec(obj)
    holder = spec.get("holderIdentity")
    renewed = objects.parse_timestamp(str(spec.get("renewTime") or ""))
    if not holder or renewed is None:
        return "nobody holds its lease", False

    now = facts.now + timedelta(seconds=facts.skew or 0)
    seen = f"seen {status_text.duration(now - renewed)} ago"
    return f"{holder} leads, {seen}", bool(lease_holders.live_holder(obj, now))


def _scheduler(facts: ClusterFacts) -> Result:
    cure = "start a kube-scheduler with vnode scheduler-config; see its log"
    text, alive = lease(facts.scheduler_lease, facts) if facts.scheduler_lease else ("", False)
    old = [pod for pod in facts.waiting if _age(pod, facts) > _MAX_WAIT]
    if old:
        names = ", ".join(objects.key(pod) for pod in old[:3])
        waits = f"{len(old)} candidates wait for it, the first of them: {names}"
        if alive:
            waits += f", though it runs: {text}"
            cure = (
                f"see that its configuration has the profile {keys.CANDIDATE_SCHEDULER}, as vnode "
                "scheduler-config prints it; see its log"
            )

        return Level.FAIL, waits, cure

    if facts.scheduler_lease is not None:
        return (Level.OK, text, "") if alive else (Level.FAIL, f"it does not run: {text}", cure)

    if facts.placed:
        return Level.OK, f"it has looked at {len(facts.placed)} candidates, none waits", ""

    return Level.SKIP, "it has no lease, and no candidate has come yet", ""


def _age(pod: Object, facts: ClusterFacts) -> timedelta:
    created = objects.created_at(pod)
    return facts.now + timedelta(seconds=facts.skew or 0) - created if created else timedelta()


def _sources(facts: ClusterFacts) -> Iterator[Finding]:
    for source in facts.sources:
        condition = objects.condition(source, "Ready")
        name = f"source {objects.key(source)}"
        if condition is None:
            cure = "start the agent of this cluster, which gives sources their rights"
            yield Finding(facts.name, name, Level.FAIL, "no agent has reconciled it yet", cure)
        elif condition.get("status") != "True":
            text = f"{condition.get('reason')}: {condition.get('message')}"
            yield Finding(facts.name, name, Level.FAIL, text, IN_THE_TEXT)
        elif source_rbac.is_whole(source):
            text = f"{condition.get('message', '')}, {source_rbac.WHOLE}"
            cure = "vnode connect --cluster-wide --target-namespaces LABELS gives it fewer"
            yield Finding(facts.name, name, Level.WARN, text, cure)
        else:
            yield Finding(facts.name, name, Level.OK, str(condition.get("message", "")))


def _namesakes(facts: ClusterFacts) -> Iterator[Finding]:
    """Find source clusters that have the same name, by their chaperons."""
    origins: dict[str, set[str]] = {}
    for chaperon in facts.chaperons:
        name = objects.labels(chaperon).get(keys.PARENT_CLUSTER_NAME, "")
        uid = objects.annotations(chaperon).get(keys.PARENT_CLUSTER_UID)
        if uid:
            origins.setdefault(name, set()).add(uid)

    for name, uids in sorted(origins.items()):
        if len(uids) > 1:
            text = f"{len(uids)} sources call themselves {name!r}"
            cure = "give each agent a --cluster-name of its own"
            yield Finding(facts.name, "cluster names", Level.FAIL, text, cure)
