"""Names the cures for Targets that are not ready, by what their conditions say. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.targets import model

NO_KUBECONFIG: Final = (
    r"^(there is no Secret|Secret \S+ has no key|(?!the target cannot be reached).*kubeconfig).*"
)
DELETED: Final = "its Target is being deleted"
CHECKS: Final = "vnode doctor checks both sides of each connection"
_CURES: Final = (
    (r"certificate is for another name", "{connect} --server https://HOST:PORT"),
    (
        r"does not say which cluster it is",
        "start vnode's agent in {name}: vnode doctor --target FILE tells whether it runs",
    ),
    (NO_KUBECONFIG, "{connect} makes the Secret of its kubeconfig again"),
    (
        r"the target has no namespace '(?P<space>[^']+)'",
        "kubectl create namespace {space} (in {name}), and then {connect}, which makes the Source",
    ),
    (
        r"does not know PodChaperons",
        "vnode install --kubeconfig FILE, for {name}, or its Helm chart; then start its agent",
    ),
    (
        r"has no ClusterSummary|has sent no heartbeat",
        "start the agent in {name}: vnode doctor --target FILE tells whether it runs",
    ),
    (
        r'failed calling webhook "(?P<webhook>[^"]+)".*(x509|certificate)',
        (
            "webhook {webhook} of {name} shows a certificate that its caBundle does not vouch for: "
            "have its installation there renew both; with failurePolicy Ignore pods start without "
            "it"
        ),
    ),
    (
        r'failed calling webhook "(?P<webhook>[^"]+)"',
        (
            "see why webhook {webhook} of {name} does not answer: there, kubectl get "
            "mutatingwebhookconfigurations,validatingwebhookconfigurations -o wide names its "
            "Service; with failurePolicy Ignore pods start without it"
        ),
    ),
)


def of(target: Object, text: str) -> tuple[str, ...]:
    """Return the cure for what is said of a Target; none if that itself is all that can be said."""
    if text == DELETED:
        return (f"once it is gone, make it again: {connect(target)}; or connect another target",)

    by_profile = "clusterProfile" in objects.spec(target)
    for pattern, cure in _CURES:
        match = re.search(pattern, text, re.DOTALL)
        if match and not (by_profile and "{connect}" in cure):
            name = model.key_of(target).name
            return (cure.format(name=name, connect=connect(target), **match.groupdict()),)

    return ()


def of_all(told: Iterable[tuple[Object, str]]) -> tuple[str, ...]:
    """Return the cures for what is said of Targets, and then what checks them."""
    found = [cure for target, text in told for cure in of(target, text)]
    return (*dict.fromkeys(found), CHECKS)


def connect(target: Object) -> str:
    """Return the command that makes the credentials of a Target, and its Source, again."""
    key = model.key_of(target)
    whose = f"--namespace {key.namespace}" if key.namespace else "--cluster-wide"
    return f"vnode connect --source FILE --target FILE --name {key.name} {whose}"
