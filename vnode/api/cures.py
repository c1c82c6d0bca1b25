"""Advice on repairing an installation, in the wording of all messages that give it."""

from typing import Final

INSTALL: Final = "run vnode install, or install its Helm chart"
REPAIR: Final = "run vnode install again, or helm upgrade if it is a Helm release"
SELF_TARGETS: Final = (
    "run vnode install --self-targets, or helm upgrade with --set selfTargets.enabled=true"
)
