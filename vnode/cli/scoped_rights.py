"""Turns the agent's rights in the whole cluster into rights in named namespaces. Pure.

A ClusterRole that is bound to the agent is split by what its rules are about. What is in no
namespace stays in it; the rest becomes a Role of the same name in each of the namespaces. So there
is one list of the agent's rights, with a reason beside each, and two ways to give them. The chart
does the same (`charts/vnode/templates/_scoped.tpl`), by the same list of kinds.

What sources have in the whole cluster is held to what the agent has there, since it could not give
them more: they have no streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.targets.source_rbac import VIEWER_ROLE

LABEL: Final = "vnode.dev/scoped-rights"
"""Marks the Roles and RoleBindings that there are in this mode only, with the value `true`."""
KINDS: Final = (
    kinds.ROLE_BINDINGS,
    kinds.ROLES,
    kinds.CLUSTER_ROLE_BINDINGS,
    kinds.CLUSTER_ROLES,
)
"""Of what has that label, in the order in which they are deleted."""
OPTIONAL: Final = frozenset({"vnode-issuing", "vnode-decisions", "vnode-published-decisions"})
"""ClusterRoles that the chart binds if it is told to, and splits then."""
ACCOUNT: Final = "vnode"

_KINDS: Final = [kind for kind in vars(kinds).values() if isinstance(kind, Kind)]
CLUSTER_SCOPED: Final = sorted(
    {kind.plural for kind in _KINDS if not kind.namespaced} - {kinds.CLUSTER_ROLES.plural}
)
"""Resources that are in no namespace. ClusterRoles are not among them: the agent may bind some, and
a Role allows it to do so in its namespace."""


def scoped(objs: Objects, namespaces: Sequence[str]) -> Objects:
    """Return the objects, with the agent's rights held to these namespaces."""
    bound = {
        obj["roleRef"]["name"]
        for obj in objs
        if obj["kind"] == kinds.CLUSTER_ROLE_BINDINGS.kind and _is_of_agent(obj)
    }
    found: Objects = []
    for obj in objs:
        if obj["kind"] == kinds.CLUSTER_ROLES.kind and objects.name(obj) in bound:
            inside, outside = _split(obj["rules"])
            found.append({**obj, "rules": outside})
            found += (_role(obj, inside, namespace) for namespace in namespaces)
        elif obj["kind"] == kinds.CLUSTER_ROLE_BINDINGS.kind and _is_of_agent(obj):
            found.append(obj)
            found += (_binding(obj, namespace) for namespace in namespaces)
        elif obj["kind"] == kinds.CLUSTER_ROLES.kind and objects.name(obj) == VIEWER_ROLE:
            found.append({**obj, "rules": _split(obj["rules"])[1]})
        else:
            found.append(obj)

    return found


def _is_of_agent(binding: Object) -> bool:
    return any(subject["name"] == ACCOUNT for subject in binding["subjects"])


def _split(rules: Iterable[Object]) -> tuple[Objects, Objects]:
    """Return the rules about what is in namespaces, and those about all else."""
    found: dict[bool, Objects] = {True: [], False: []}
    for rule in rules:
        for is_inside, into in found.items():
            resources = [each for each in rule["resources"] if _is_inside(each) == is_inside]
            if resources:
                into.append({**rule, "resources": resources})

    return found[True], found[False]


def _is_inside(resource: str) -> bool:
    return resource.partition("/")[0] not in CLUSTER_SCOPED


def _role(cluster_role: Object, rules: Objects, namespace: str) -> Object:
    return {
        **cluster_role,
        "kind": kinds.ROLES.kind,
        "metadata": _metadata(cluster_role, namespace),
        "rules": rules,
    }


def _binding(cluster_binding: Object, namespace: str) -> Object:
    return {
        **cluster_binding,
        "kind": kinds.ROLE_BINDINGS.kind,
        "metadata": _metadata(cluster_binding, namespace),
        "roleRef": {**cluster_binding["roleRef"], "kind": kinds.ROLES.kind},
    }


def _metadata(obj: Object, namespace: str) -> Object:
    labels = {**objects.labels(obj), LABEL: "true"}
    return {**objects.metadata(obj), "namespace": namespace, "labels": labels}
