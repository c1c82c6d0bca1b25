"""Has an example or two of each command, which stand at the end of its help; "" is vnode itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "": (
        "vnode quickstart --source c1.kubeconfig --target c2.kubeconfig",
        "vnode get targets -A",
        "vnode explain web-1",
        "vnode doctor",
        "vnode COMMAND --help",
    ),
    "quickstart": (
        "vnode quickstart --source c1.yaml --target c2.yaml --chart vnode-0.2.0.tgz",
        "vnode quickstart --source-context a --target-context b --chart charts/vnode",
    ),
    "agent": (
        "vnode agent --advertise-address 192.0.2.1",
        "vnode agent --context c1 --cluster-name c1",
    ),
    "install": (
        "vnode install --webhook-url https://192.0.2.1:9443",
        "vnode install --dry-run > vnode.yaml",
    ),
    "connect": (
        "vnode connect --source c1.kubeconfig --target c2.kubeconfig --name c2",
        "vnode connect --source-context a --target-context b -n team-a",
    ),
    "replace-target": (
        "vnode replace-target c2 --target new.kubeconfig",
        "vnode replace-target c2 --target new.kubeconfig --lost",
    ),
    "disconnect": (
        "vnode disconnect c2 -n team-a --dry-run",
        "vnode disconnect c2 --source c1.kubeconfig --target c2.kubeconfig --yes",
    ),
    "uninstall": (
        "vnode uninstall --delegates=delete --dry-run",
        "vnode uninstall --delegates=keep --crds --yes",
    ),
    "migrate": ("vnode migrate --kubeconfig c1.kubeconfig", "vnode migrate --back --watch"),
    "get": ("vnode get targets -A", "vnode get pods -n team-a -o wide --watch"),
    "plan": ("vnode plan -f policy.yaml --replicas 10", "vnode plan -f policy.yaml -n team-a"),
    "explain": (
        "vnode explain web-1",
        "vnode explain deployment/web -n team-a",
        "vnode explain job import -o json",
    ),
    "top": ("vnode top targets -A", "vnode top accelerators -A --once"),
    "dashboard": ("vnode dashboard", "vnode dashboard -n team-a --no-open --port 8080"),
    "doctor": ("vnode doctor", "vnode doctor --target c2.kubeconfig -o json"),
    "cordon": ("vnode cordon c2 -n team-a",),
    "uncordon": ("vnode uncordon c2 -n team-a",),
    "drain": ("vnode drain c2 -n team-a --timeout 10m", "vnode drain c2 --dry-run"),
    "completion": ("vnode completion bash > ~/.vnode-completion",),
    "scheduler-config": ("vnode scheduler-config --extender https://192.0.2.1:9444",),
    "version": ("vnode version", "vnode version --client -o json"),
}


def of(command: str) -> tuple[str, ...]:
    """Return the examples of a command; none for one that nobody calls by hand."""
    return _EXAMPLES.get(command, ())


def epilog(command: str) -> str | None:
    """Return the end of a command's help."""
    lines = [f"  {line}" for line in of(command)]
    return "\n".join(("\b", "Examples:", *lines)) if lines else None
