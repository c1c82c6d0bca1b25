"""Defines the setting `scores` of the agent's configuration: what is published about clusters."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

from vnode.api import quantities, resources
from vnode.api.errors import ConfigError

ScoreKind: TypeAlias = Literal["AddOnPlacementScore", "ClusterScore"]

MOST: Final = 20
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


class PublishedResource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A resource of which is published how much is free."""

    name: str
    """What begins the names of its scores: `gpu` for gpuNodeAvailable and the others."""
    resource: str
    most: str | int
    """The amount that is 100 on the absolute scale."""
    model: str = ""
    """Only nodes with this model of accelerators count; "": all."""

    @property
    def amount(self) -> int:
        """`most`, in the units of `vnode.api.resources`."""
        return resources.parse({self.resource: self.most})[self.resource]


PUBLISHED: Final = (
    PublishedResource("cpu", resources.CPU, "100"),
    PublishedResource("mem", resources.MEMORY, "1Ti"),
    PublishedResource("gpu", "nvidia.com/gpu", 20),
    PublishedResource("tpu", "google.com/tpu", 20),
)


class ScoresConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is published about targets; it takes rights of its own, `vnode-published-scores`."""

    publish: tuple[ScoreKind, ...] = ()
    """As which kinds; none by default."""
    resources: tuple[PublishedResource, ...] = PUBLISHED

    def check(self) -> None:
        """Raise ConfigError, with the cure, for what cannot be published."""
        if len(set(self.publish)) < len(self.publish):
            raise ConfigError("scores.publish names a kind twice")

        if len(self.resources) > MOST:
            raise ConfigError(f"scores.resources has over {MOST} entries: name fewer")

        names = [each.name for each in self.resources]
        if len(set(names)) < len(names):
            raise ConfigError("scores.resources has two entries of one name: rename one")

        for each in self.resources:
            _check(each)


def _check(each: PublishedResource) -> None:
    where = f"scores.resources, {each.name!r}"
    if not _NAME.fullmatch(each.name):
        raise ConfigError(f"{where}: a name has letters, digits, dots, - and _, 64 at most")

    if not each.resource:
        raise ConfigError(f"{where}: resource is empty: name one, such as nvidia.com/gpu")

    try:
        positive = quantities.nano(each.most) > 0
    except ConfigError as error:
        raise ConfigError(f"{where}: most: {error}") from error

    if not positive:
        raise ConfigError(f"{where}: most must be above 0")
