"""The interface between the kinds that follow pods and the follower, which carries them.

A family knows its originals in the source, which targets need them, and what a copy looks like; the
follower does the writing. The follower treats all families alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from vnode.api import cures, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following import copies
from vnode.following.own_delegates import OwnDelegates
from vnode.following.reference_index import Key, Need
from vnode.following.references import Ref
from vnode.kube.client import Client
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.supervisor import Supervisor


@dataclass(frozen=True, slots=True)
class Original:
    """What is known of an object of the source; `body` is the whole object, where it is at hand.

    `marks` are `copies.marks` of the copy that it should have in the target; None if unknown.
    `wanted` is that copy, where the family can say it beforehand. `remark` is to be told when the
    copy is written. Where there is no copy yet, a `refusal` says why none is made.
    """

    uid: str
    version: str
    digest: str
    marks: str | None = None
    body: Object | None = None
    wanted: Object | None = None
    remark: str = ""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class FamilyContext:
    """What every family is given: the source, the links to the targets, and the follower.

    `wake` has one object in one target reconciled, `wake_kind` all of a kind in all targets.
    `copies_of` returns each target's copy of an object, trimmed, by node. `delegates` says how a
    copy selects the delegates of this cluster.
    """

    local: Client
    links: Links
    identity: Identity
    wake: Callable[[Key], None]
    wake_kind: Callable[[Kind], None]
    copies_of: Callable[[Ref], dict[str, Object | None]]
    clock: Clock
    delegates: OwnDelegates


class Family(ABC):
    """Some kinds that follow pods for one reason. Most have no need to override the defaults."""

    carried: ClassVar[Sequence[Kind]]
    setting: ClassVar[str]
    """The field of the agent's configuration that turns the family off."""
    role: ClassVar[str] = "admiralty-source"
    """The ClusterRole of a target by which a source may write copies."""
    keeps_copies: ClassVar[bool] = False
    """Copies stay when their Target is deleted or vnode is uninstalled. Where they do not, their
    kinds are in `vnode.api.kinds.FOLLOWING`, too."""
    active: bool = True
    """Whether the family is carried. One that is not is only opened, and is told of no pods."""
    selects_pods: ClassVar[bool] = False
    """Copies select pods of the target, by what `OwnDelegates` says once it knows all of ours."""

    @property
    def denial_cure(self) -> str:
        """What to do where a target does not allow copies."""
        return f"have the role of its Source allow it, or set {self.setting} to false"

    @abstractmethod
    async def open(self, tasks: Supervisor) -> None:
        """Begin, in `tasks`; return when `need` can be relied upon."""

    @abstractmethod
    def need(self, key: Key, link: Link) -> Need:
        """Return whether the object has to be in that target."""

    @abstractmethod
    def keys_on(self, node: str) -> Iterator[Key | None]:
        """Yield all that may be wanted in one target; `need` tells whether it is.

        None for each other that it has looked at: there may be others' work in between.
        """

    @abstractmethod
    def involved_objects(self, key: Key) -> Iterator[Object]:
        """Yield references to the objects that get Events about this one."""

    @abstractmethod
    async def original(self, ref: Ref, link: Link, copy: Object | None) -> Original | None:
        """Return what is to follow; None if there is nothing.

        A present `copy`, trimmed, is deleted because of None: then ask the API server itself,
        unless a complete list says so.
        """

    def has_changed(self, _ref: Ref) -> bool:
        """Tell whether `original` has to ask the API server since the original has changed."""
        return False

    @abstractmethod
    async def build(self, ref: Ref, original: Original, link: Link) -> Object | None:
        """Return the copy to create; None if the original has been deleted since."""

    @abstractmethod
    def is_up_to_date(self, ref: Ref, copy: Object, original: Original) -> bool:
        """Tell whether a trimmed copy is as it should be, but for labels and annotations."""

    async def read(self, local: Client, ref: Ref) -> Object | None:
        """Return an object of the source, asked of its API server; None if it does not exist.

        ConfigError, with the cure, if the agent may not read such objects.
        """
        try:
            return await local.get(ref.kind, ref.name, ref.namespace)
        except NotFound:
            return None
        except Denied as error:
            raise ConfigError(
                f"the agent may not read {ref.kind.plural}: {error.message}; {cures.REPAIR}; "
                f"or set {self.setting} to false"
            ) from error

    def on_pod(self, old: Object | None, new: Object | None) -> None:  # noqa: B027
        """Note that a proxy pod came, changed or went."""

    def serves(self, _link: Link) -> bool:
        """Tell whether the family goes to that target at all."""
        return True

    def relaxed(self, _body: Object) -> Object | None:
        """Return a copy without the fields that the target may have to choose; None if it has none.

        It is created when the target refuses the copy itself.
        """
        return None

    def update(self, body: Object, copy: Object) -> Object | None:
        """Return the copy as it should be, with what the target has chosen in the present one.

        None if the present one can never become so: it is then deleted and created again.
        """
        return copies.successor(body, copy)

    def on_reconciled(self, _key: Key) -> None:  # noqa: B027
        """Note that a copy is as it should be, in the target or absent."""

    def trim(self, copy: Object) -> Object:
        """Return what is kept of a copy in the store."""
        return {"metadata": objects.metadata(copy), "spec": objects.spec(copy)}

    def replaces(self, _copy: Object, _original: Original) -> bool:
        """Tell whether a trimmed copy of an earlier original of the name may become one of this.

        If not, it is left as it is.
        """
        return True

    def is_equivalent(self, _other: Object, _original: Original) -> bool:
        """Tell whether somebody else's object, trimmed, serves as well as a copy would."""
        return False


class Demand(Protocol):
    """One reason why objects of a family are needed in targets."""

    def need(self, key: Key, link: Link) -> Need:
        """Return whether the object has to be in that target."""

    def keys_on(self, node: str) -> Iterator[Key | None]:
        """Yield all that may be wanted in one target; `need` tells whether it is.

        None for each other that it has looked at: there may be others' work in between.
        """

    def involved_objects(self, key: Key) -> Iterator[Object]:
        """Yield references to the objects that get Events about this one."""

    def concerns(self, key: Key) -> bool:
        """Tell whether the object may have to be in a target, beyond being TOLERATED: at once."""

    def in_namespace(self, namespace: str) -> bool:
        """Tell whether anything of that namespace may be needed in some target."""
