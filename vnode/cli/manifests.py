"""Loads the YAML that ships with vnode, as objects to apply; the chart has copies of it.

The files name the namespace `vnode`; here it becomes the one that the user chose, and the webhook
gets its address. Nothing is sent from here.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from importlib.resources.abc import Traversable
from typing import Any, Final

import yaml

from vnode.api import documents, kinds, webhook_paths
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli import scoped_rights

NAMESPACE: Final = "vnode"  # in the files
ACCOUNT: Final = scoped_rights.ACCOUNT  # the service account of the agent
SCHEDULER_ACCOUNT: Final = "vnode-candidate-scheduler"
SERVICE: Final = "vnode"  # of agents that run in the cluster
WEBHOOK: Final = "vnode"  # the name of the webhook configuration
ADMIRALTY_WEBHOOK: Final = "admiralty"  # the name of Admiralty's
SELF_TARGETS: Final = "vnode-self-targets"  # the binding for Targets with `self: true`
FORMER_BINDING: Final = "vnode-self-target"
"""The same binding as older versions made it, for all."""
POD_SECURITY: Final = "pod-security.kubernetes.io/enforce"  # label of namespaces
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"  # the label that each namespace has
PART_OF: Final = "app.kubernetes.io/part-of=vnode"  # selects all objects of these files

_KINDS: Final[dict[str, Kind]] = {
    kind.kind: kind
    for kind in (
        kinds.NAMESPACES,
        kinds.CRDS,
        kinds.SERVICE_ACCOUNTS,
        kinds.CLUSTER_ROLES,
        kinds.CLUSTER_ROLE_BINDINGS,
        kinds.ROLES,
        kinds.ROLE_BINDINGS,
        kinds.MUTATING_WEBHOOKS,
        kinds.VALIDATING_POLICIES,
        kinds.VALIDATING_POLICY_BINDINGS,
    )
}


def kind_of(obj: Object) -> Kind:
    """Return the kind of one of our objects."""
    return _KINDS[obj["kind"]]


def namespace(name: str) -> Object:
    """Load the agent's namespace."""
    [obj] = _load(_root() / "namespace.yaml")
    obj["metadata"]["name"] = name
    return obj


def crds() -> Objects:
    """Load the custom resource definitions, sorted by name."""
    files = sorted((_root() / "crds").iterdir(), key=lambda file: file.name)
    return [obj for file in files for obj in _load(file)]


def rbac(namespace: str, named: Sequence[str] = (), *, allow_self_targets: bool = False) -> Objects:
    """Load service accounts, roles and bindings; bindings come last.

    The agent is held to the `named` namespaces, if there are any.
    """
    files = sorted((_root() / "rbac").iterdir(), key=lambda file: file.name)
    found = [_moved(obj, namespace) for file in files for obj in _load(file)]
    if allow_self_targets:
        found.append(self_targets(namespace))

    if named:
        more = _load(_root() / "scoped-rbac.yaml")
        found = [*scoped_rights.scoped(found, named), *(_moved(obj, namespace) for obj in more)]

    return sorted(found, key=lambda obj: obj["kind"].endswith("Binding"))


def self_targets(namespace: str) -> Object:
    """Load the binding that gives the agent the rights for Targets with `self: true`."""
    [obj] = _load(_root() / "self-targets.yaml")
    return _moved(obj, namespace)


def policies(namespace: str) -> Objects:
    """Load the admission policies that hold the agent to what it has to do, with their bindings."""
    files = sorted((_root() / "policies").iterdir(), key=lambda file: file.name)
    return [_moved(obj, namespace) for file in files for obj in _load(file)]


def webhook(
    namespace: str,
    url: str | None = None,
    *,
    reinvocation: str = "Never",
    timeout: int = 10,
    secret: str = "",
    named: Sequence[str] = (),
) -> Object:
    """Load the webhook configuration, for the Service `vnode` or for `url` (https://HOST:PORT).

    `reinvocation` and `timeout` are for the webhook of pods, which is the first one. It is called
    for the `named` namespaces only, if there are any.

    It has no caBundle: server-side apply keeps the one that the agent has written. The `secret` at
    the end of the paths is the agents', too.
    """
    [obj] = _load(_root() / "webhook.yaml")
    for each in obj["webhooks"]:
        service = each["clientConfig"]["service"]
        if secret:
            service["path"] += f"/{secret}"

        if url is None:
            service["namespace"] = namespace
        else:
            each["clientConfig"] = {"url": _webhook_url(url) + service["path"]}

        if selector := each.get("namespaceSelector"):
            selector["matchExpressions"][0]["values"] = [namespace]

        if named:
            wanted = {"key": NAMESPACE_NAME, "operator": "In", "values": list(named)}
            selector = each.setdefault("namespaceSelector", {})
            selector.setdefault("matchExpressions", []).append(wanted)

    hook = obj["webhooks"][0]
    hook["reinvocationPolicy"] = reinvocation
    hook["timeoutSeconds"] = timeout
    return obj


def everything(
    name: str, hook: Object, named: Sequence[str] = (), *, allow_self_targets: bool = False
) -> Objects:
    """Return all objects in an order in which they can be applied, for the agent's namespace."""
    bound = rbac(name, named, allow_self_targets=allow_self_targets)
    return [namespace(name), *crds(), *bound, *policies(name), hook]


def unwanted(*, allow_self_targets: bool) -> Objects:
    """Return what an installation has not, though an earlier run may have made it."""
    names = [FORMER_BINDING, *([] if allow_self_targets else [SELF_TARGETS])]
    kind = kinds.CLUSTER_ROLE_BINDINGS
    return [
        {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        for name in names
    ]


def to_yaml(objs: Objects) -> str:
    """Serialize the objects as one YAML stream."""
    text: str = yaml.safe_dump_all(objs, sort_keys=False, width=100)
    return text


def _webhook_url(url: str) -> str:
    if not url.startswith("https://"):
        raise ConfigError(
            f"--webhook-url {url!r} must start with https://, e.g. https://192.0.2.1:9443"
        )

    return url.rstrip("/").removesuffix(webhook_paths.PODS)


def _moved(obj: Object, namespace: str) -> Object:
    for place in (obj["metadata"], *obj.get("subjects", ())):
        if place.get("namespace") == NAMESPACE:
            place["namespace"] = namespace

    for condition in (obj.get("spec") or {}).get("matchConditions") or ():
        condition["expression"] = condition["expression"].replace(
            _user(NAMESPACE), _user(namespace)
        )

    return obj


def _user(namespace: str) -> str:
    """Return the user name of the agent's account."""
    return f"system:serviceaccount:{namespace}:{ACCOUNT}"


def _root() -> Traversable:
    return importlib.resources.files("vnode") / "manifests"


def _load(file: Traversable) -> list[dict[str, Any]]:
    return documents.load_all(file.read_text("utf-8"))
