"""Reads a policy from a file, and from the cluster what its plan depends on."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from vnode.api import documents, keys, kinds
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.objects import Object, Objects
from vnode.cli.plan.free_room import ReportedTarget
from vnode.cli.plan.planning import ClusterView
from vnode.insight import status_text, target_clients, usable_targets
from vnode.kube.client import Client
from vnode.placement.decisions import slices
from vnode.placement.policies import decoding
from vnode.planning.cluster_decision import DecisionReference
from vnode.targets import heartbeats, model

_VIRTUAL: Final = f"{keys.PROVIDER_LABEL}={keys.PROVIDER}"


def read_policy(path: str, namespace: str) -> Object:
    """Return the policy in a file ("-": standard input); ConfigError if it is none.

    A PlacementPolicy that names no namespace is for that one.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
        obj = documents.parse(text)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (ConfigError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no policy: {error}") from error

    return _checked(obj, path, namespace)


def _checked(obj: Any, path: str, namespace: str) -> Object:
    known = {kind.kind: kind for kind in decoding.KINDS}
    kind = known.get(obj.get("kind", "")) if isinstance(obj, dict) else None
    if kind is None or obj.get("apiVersion") != kind.api_version:
        raise ConfigError(
            f"{path} has no policy: write apiVersion {decoding.KINDS[0].api_version} and "
            f"kind {' or '.join(known)}"
        )

    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ConfigError(f"{path}: metadata.name is missing")

    if unknown := sorted(obj.keys() - {"apiVersion", "kind", "metadata", "spec", "status"}):
        raise ConfigError(f'{path}: unknown field "{unknown[0]}"; the policy is below "spec"')

    home = str(metadata.get("namespace") or namespace) if kind.namespaced else ""
    return {**obj, "metadata": {"name": metadata["name"], **({"namespace": home} if home else {})}}


async def read_cluster(
    client: Client, namespace: str | None, follows: DecisionReference | None = None
) -> ClusterView:
    """Read virtual nodes, policies, decisions beside the one that the planned policy follows, and
    the proxy pods of a namespace (None: of all)."""
    nodes = await client.list(kinds.NODES, label_selector=_VIRTUAL)
    pods = await client.list(kinds.PODS, namespace)
    policies: Objects = []
    for kind in decoding.KINDS:
        try:
            policies += await client.list(kind, namespace if kind.namespaced else None)
        except (Denied, NotFound):
            continue  # then it is planned as if there were none of that kind

    proxies = [pod for pod in pods if status_text.is_proxy(pod)]
    return ClusterView(nodes, proxies, policies, await _decisions(client, follows))


async def ask_targets(
    client: Client, namespace: str | None, view: ClusterView, now: datetime
) -> ClusterView:
    """Return the view with what those targets have free that pods of a namespace may use."""
    targets = await usable_targets.covering(client, namespace)
    told, unasked = {}, []
    for target, summary, problem in await target_clients.summaries(client, targets):
        key = model.key_of(target)
        try:
            options = model.parse(target).options
        except ConfigError:
            continue  # it has no virtual node that takes pods

        told[key.node_name] = ReportedTarget(
            summary if heartbeats.is_recent(summary or {}, now) else None, options
        )
        if problem:
            unasked.append(f"{key} counts as its virtual node says: {problem}")

    return replace(view, told=told, unasked=tuple(unasked))


async def _decisions(client: Client, follows: DecisionReference | None) -> Objects:
    if follows is None:
        return []

    try:
        return await client.list(slices.kind_of(follows), follows.namespace)
    except NotFound:
        return []
