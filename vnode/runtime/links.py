"""Links: the live connections to targets, as everybody but `vnode.targets` sees them.

`vnode.targets` makes a Link for each Target that can work and takes it away again; virtual nodes,
pods and the kubelet API find it here. A changed Target, Secret or token is a new Link in the place
of the old one; whoever keeps something per link follows `subscribe`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vnode.api import keys, kinds, names, objects
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import explain

PARENT_UID_INDEX: Final = "parent-uid"
PARENT_KEY_INDEX: Final = "parent-key"
OTHERS_INDEX: Final = "others-parent-key"
"""Of the chaperons that another Target of this cluster sent, by the key of the parent."""


@dataclass(frozen=True, slots=True)
class TargetKey:
    """A Target, or a ClusterTarget where `namespace` is ""."""

    namespace: str
    name: str

    @property
    def node_name(self) -> str:
        """The name of its virtual node."""
        return names.virtual_node(self.namespace, self.name)

    @property
    def finalizer(self) -> str:
        """The finalizer that it has on proxy pods."""
        return names.finalizer(self.namespace, self.name)

    @property
    def fits_label(self) -> bool:
        """Its name can be a label's value, which identifies its virtual node."""
        return names.LABEL_VALUE.fullmatch(self.name) is not None

    def sent(self, chaperon: Object) -> bool:
        """It came by this Target, or does not say by which, as Admiralty's do not."""
        return objects.annotations(chaperon).get(keys.TARGET, str(self)) == str(self)

    def __str__(self) -> str:
        return objects.join_key(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """What a Target asks for beyond a connection.

    `storage_classes` maps classes of the source to those of the target for claims that follow, ""
    standing for a cluster's default; None means that claims do not follow. `source_api` is the host
    and port by which pods there reach the source's API server with a token of the source; None
    means that the target's own accounts give them theirs.
    """

    storage_classes: Mapping[str, str] | None = None
    create_namespaces: bool = False
    source_api: tuple[str, str] | None = None


NO_OPTIONS: Final = TargetOptions()


CONNECTING: Final = "Connecting"
"""The reason of a health before the target's first word: it says nothing of the target."""
UNREACHABLE: Final = "Unreachable"
"""The reason of a health while the target does not answer."""

OTHER_CLUSTER: Final = "OtherCluster"
"""The reason of a health where not the cluster of the Target answers, but another one."""


@dataclass(frozen=True, slots=True)
class LinkHealth:
    """Whether a target answers; `reason` is a CamelCase word, `message` is for people."""

    healthy: bool
    reason: str
    message: str
    since: datetime


class Link:
    """A connection to one target, alive until it is taken out of `Links`.

    `chaperons` holds the PodChaperons of this cluster in the target, indexed by parent UID and by
    the key of the parent; `summaries` its ClusterSummary.
    """

    def __init__(
        self,
        target: TargetKey,
        client: Client,
        *,
        chaperons: Informer,
        summaries: Informer,
        health: LinkHealth,
        labels_excluded: Callable[[str], bool] | None = None,
        is_self: bool = False,
        options: TargetOptions = NO_OPTIONS,
    ) -> None:
        self.target = target
        self.client = client
        self.chaperons = chaperons
        self.summaries = summaries
        self.health = health
        self.labels_excluded = labels_excluded  # tells, for "key=value", what nodes do not show
        self.is_self = is_self  # the target is this cluster itself
        self.options = options
        self._failures: dict[str, str] = {}  # task about this link -> why it failed
        self.recognized_uid = ""  # which cluster it is, where its summary does not say so
        self._listeners: Listeners[[]] = Listeners()

    @property
    def node_name(self) -> str:
        """The name of the virtual node."""
        return self.target.node_name

    @property
    def failure(self) -> str:
        """Why something of ours about this target does not work; "" while all does."""
        return next(iter(self._failures.values()), "")

    @property
    def synced(self) -> bool:
        """A complete list of our chaperons in the target has been seen.

        Nothing is listed before the cluster that answers is known to be the Target's own.
        """
        return self.chaperons.synced.is_set()

    @property
    def answers(self) -> bool:
        """The target answers requests, as far as known; one that does not is asked nothing."""
        return self.health.healthy or self.health.reason != UNREACHABLE

    @property
    def summary(self) -> Object | None:
        """The target's ClusterSummary, as last seen."""
        return self.summaries.store.get(keys.SUMMARY_NAME)

    @property
    def runs_vnode(self) -> bool:
        """The target's agent is vnode, so that chaperons may carry its finalizer."""
        return keys.AGENT_VERSION in objects.annotations(self.summary or {})

    @property
    def cluster_uid(self) -> str | None:
        """Which cluster the target is; "" if it does not say so, None as long as unknown."""
        if (summary := self.summary) is None:
            return self.recognized_uid or None

        return objects.annotations(summary).get(keys.CLUSTER_UID) or self.recognized_uid

    def covers(self, namespace: str) -> bool:
        """Pods of that namespace may go to this target."""
        return self.target.namespace in ("", namespace)

    def candidate(self, pod_uid: str) -> Object | None:
        """The chaperon of the proxy pod with that UID, if the target has one."""
        found = self.chaperons.store.by_index(PARENT_UID_INDEX, pod_uid)
        return found[0] if found else None

    async def look_for_candidate(self, pod_uid: str, namespace: str) -> Object | None:
        """The same, asked of the target itself: for who deletes what has none."""
        found = await self.client.list(
            kinds.POD_CHAPERONS, namespace, label_selector=f"{keys.PARENT_UID}={pod_uid}"
        )
        return next(filter(self.target.sent, found), None)

    def candidates(self) -> Iterator[tuple[str, Object]]:
        """All chaperons of this cluster in the target, with the UIDs of their pods."""
        for uid in self.chaperons.store.values_of(PARENT_UID_INDEX):
            for chaperon in self.chaperons.store.by_index(PARENT_UID_INDEX, uid):
                yield uid, chaperon

    def set_health(self, health: LinkHealth) -> None:
        """Record what the last probe found; listeners hear of changes only."""
        changed = (health.healthy, health.reason, health.message) != (
            self.health.healthy,
            self.health.reason,
            self.health.message,
        )
        if changed:
            self.health = health
            self._listeners.call()

    def report(self, task: str, error: Exception | None) -> None:
        """A task about this link failed, or, with None, works again; as `KeyedTasks` reports."""
        before = self.failure
        self._failures.pop(task, None)
        if error is not None:
            self._failures[task] = f"{task} failed: {explain(error)}; it is tried again"

        if self.failure != before:
            self._listeners.call()

    def on_health(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever `health` or `failure` changes."""
        self._listeners.add(listener)


class Links:
    """All links, by the name of their virtual node."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}
        self._added: Listeners[Link] = Listeners()
        self._removed: Listeners[Link] = Listeners()

    def __iter__(self) -> Iterator[Link]:
        return iter(list(self._links.values()))

    def __len__(self) -> int:
        return len(self._links)

    def get(self, node_name: str) -> Link | None:
        """The link behind a virtual node, or None."""
        return self._links.get(node_name)

    def covering(self, namespace: str) -> list[Link]:
        """The links that pods of that namespace may use."""
        return [link for link in self._links.values() if link.covers(namespace)]

    def add(self, link: Link) -> None:
        """Make a link known; there must be none of its name."""
        self._links[link.node_name] = link
        self._added.call(link)

    def remove(self, link: Link) -> None:
        """Take a link away; its client is closed afterwards."""
        if self._links.get(link.node_name) is link:
            del self._links[link.node_name]
            self._removed.call(link)

    def subscribe(self, added: Callable[[Link], None], removed: Callable[[Link], None]) -> None:
        """Hear of links that come and go, and at once of those that are there. Must not await."""
        self._added.add(added)
        self._removed.add(removed)
        for link in self:
            added(link)
