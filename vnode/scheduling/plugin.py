"""Declares the extension points: what a plugin may implement, and what it may rely on.

Names and meaning are kube-scheduler's; what is scheduled is a proxy pod, and a node is a virtual
node, that is, a whole target cluster. A plugin is a class with a `NAME`; it inherits from the
points that it takes part in, and is built once with its arguments and a Handle. Everything up to
Permit runs in the scheduling cycle: synchronous, in memory, microseconds. What has to wait belongs
into a Permit that waits, or into PreBind or Bind, which run concurrently.

    QueueSort, PreEnqueue                          which pod is next, which is not ready at all
    PreFilter, Filter, PostFilter                  which targets can take it; what if none can
    Plan (between PreFilter and Filter)            how many pods of its workload each is to have
    PreScore, Score (with normalize_score)         which of them should, 0 to 100 each
    Reserve, Permit                                a target was chosen: record it, or hold the pod
    PreBind, Bind, PostBind                        write it to the API server

Nobody changes a pod, a node or a snapshot: they are shared. An exception of a plugin counts as its
ERROR status.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from vnode.api import objects
from vnode.api.clock import Clock, SystemClock
from vnode.api.objects import Object
from vnode.api.score_terms import ScoreReference
from vnode.gangs.table import Gangs
from vnode.planning.policy import NO_POLICIES, Policies
from vnode.scheduling.cycle import CycleState, PlanOutcome
from vnode.scheduling.events import EVERYTHING, ClusterEventWithHint
from vnode.scheduling.status import Status
from vnode.scheduling.waiting_pods import WaitingPods

if TYPE_CHECKING:
    from vnode.scheduling.queued_pod import QueuedPod
    from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo

MAX_SCORE: Final = 100
"""The best that Score may give; the worst is 0 (kube-scheduler's range)."""


class NoArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a plugin that takes none."""


Rejection = Callable[["VirtualNodeInfo"], "Status | None"]
"""Returns why a node cannot take the pod at hand, whatever a plan says and what is free; None if
it can."""

CandidatesOf = Callable[[Object], Sequence[tuple[str, float]]]
"""Returns the nodes where a pod has a candidate, oldest first, with the moments of creation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """What a plugin may use of the scheduler around it."""

    namespace_refusal: Callable[[str], str]
    """Why pods of the namespace of that name cannot go to targets; "" if they can."""
    manifest_refusal: Callable[[Object], str] = lambda _pod: ""
    """Why a pod's own constraints are not known; "" if they are."""
    constraints: Callable[[Object], Object | None] = objects.spec
    """The spec by which a pod's delegate chooses its node in a target; None if it is not known."""
    is_overridden: Callable[[Object, str], bool] = lambda _pod, _node: False
    """Whether override policies change a pod in a node's target."""
    is_charged: Callable[[Object, str], bool] = lambda _pod, _node: False
    """Whether the quotas of a node's target count a pod already, which has its delegate there."""
    is_refused: Callable[[Object, str], bool] = lambda _pod, _node: False
    """Whether a pod has a candidate there that a quota or a limit of the target has refused."""
    policies: Policies = NO_POLICIES
    """The placement policies."""
    use_score: Callable[[ScoreReference], None] = lambda _reference: None
    """Has such scores be there from the first cycle on; to be called by a plugin's constructor."""
    candidates: CandidatesOf = lambda _pod: ()
    """Where a pod waits already, perhaps by a former leader."""
    clock: Clock = field(default_factory=SystemClock)
    gangs: Gangs | None = None
    """Which pods start together; None where there are no gangs."""
    waiting: WaitingPods = field(default_factory=WaitingPods)
    """The pods that Permit holds."""


class Plugin(ABC):
    """Base of all plugins."""

    NAME: ClassVar[str]
    """Its name in configuration and messages: CamelCase, unique."""

    Args: ClassVar[type[msgspec.Struct]] = NoArgs
    """The type of its arguments; the configuration is decoded into it strictly."""

    def __init__(self, args: Any, handle: Handle) -> None:
        """Keep the arguments, an instance of `Args`, and the handle."""
        self.args = args
        self.handle = handle

    def events_to_register(self) -> Iterable[ClusterEventWithHint]:
        """Return the events that may undo this plugin's rejections.

        Only they wake a pod that it rejected. The default is every event, which is always right
        and costs useless attempts.
        """
        return EVERYTHING


class QueueSortPlugin(Plugin):
    """Orders the pods of a namespace in the active queue; namespaces take turns (`active_pods`).

    A profile has exactly one.
    """

    @abstractmethod
    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        """Return the pod's place in the queue; smaller is earlier.

        It may not depend on anything that changes by itself.
        """


class PreEnqueuePlugin(Plugin):
    """Keeps pods out of the queue that are not ready to be tried."""

    @abstractmethod
    def pre_enqueue(self, pod: Object) -> Status:
        """Return success to queue the pod; anything else holds it until it is updated."""


class PreFilterPlugin(Plugin):
    """Looks at the pod once before all nodes are filtered."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Prepare Filter, or reject all nodes. SKIP: this plugin's Filter passes everywhere."""


class FilterPlugin(Plugin):
    """Decides whether a node can take the pod."""

    IS_ESTIMATE: ClassVar[bool] = False
    """Its UNSCHEDULABLE is a guess at what the target knows better, such as its free resources: it
    does not keep a pod off a node once the target has reserved a place for it. Such a plugin is not
    asked again before the pod is bound."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Accept or reject the node. After a rejection, other plugins are not asked about it.

        Which nodes pass does not depend on the order of plugins: those that plan come after the
        others, and estimates last.
        """


class PlanPlugin(FilterPlugin):
    """Plans where pods of a workload are to go; its Filter then keeps the pod at hand to that."""

    def restore(self, pod: Object, snapshot: Snapshot) -> None:
        """Take up what a former leader has decided for the pod's workload; called before cycles."""

    @abstractmethod
    def plan(
        self, state: CycleState, pod: Object, snapshot: Snapshot, rejection: Rejection
    ) -> tuple[Status, PlanOutcome]:
        """Plan for the pod, by the nodes of which there is no `rejection` or a pending one.

        Change nothing: what was decided is recorded with the outcome.

        SKIP: nobody plans it, and this plugin's Filter passes everywhere.
        """


class PostFilterPlugin(Plugin):
    """Runs if no node passed, or if the targets of all that did have rejected the pod before."""

    def overcomes(self) -> Collection[str]:
        """Return names of plugins whose UNSCHEDULABLE counts like that of an IS_ESTIMATE plugin."""
        return ()

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Object, snapshot: Snapshot, statuses: Mapping[str, Status]
    ) -> tuple[Sequence[str], Status]:
        """Return names of nodes on which a candidate should be left for their autoscaler to see.

        `statuses` has the rejection of each node that did not pass, `state.asked` the targets that
        earlier attempts have asked. The first plugin that returns success decides; the pod stays
        unschedulable either way.
        """


class PreScorePlugin(Plugin):
    """Looks at the pod and the nodes that passed, before they are scored."""

    @abstractmethod
    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        """Prepare Score. SKIP: this plugin does not score this pod."""


class ScorePlugin(Plugin):
    """Prefers nodes over others."""

    @abstractmethod
    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Return 0..MAX_SCORE, or any number if `normalize_score` brings it into that range."""

    def normalize_score(self, state: CycleState, pod: Object, scores: dict[str, int]) -> None:
        """Change this plugin's scores (node name -> score) in place; by default none."""


class ReservePlugin(Plugin):
    """Keeps a record in memory of pods on their way to a node."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Record that a target took the pod. A rejection makes all Reserve plugins `unreserve`."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Object, node_name: str) -> None:
        """Undo `reserve`; must not fail, also without a reserve before, or twice."""


class PermitPlugin(Plugin):
    """Permits, rejects or holds a pod that has a target."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Object, node_name: str) -> tuple[Status, float]:
        """Decide on the pod; WAIT holds it for at most that many seconds, not read otherwise."""


class PreBindPlugin(Plugin):
    """Does what must be done before the proxy is bound; may do I/O."""

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Prepare the binding. A rejection gives the target back."""


class BindPlugin(Plugin):
    """Binds instead of the built-in way; may do I/O."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Bind the proxy. SKIP leaves it to the next plugin, at last to the built-in binding."""


class PostBindPlugin(Plugin):
    """Learns that a proxy was bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: Object, node_name: str) -> None:
        """Take note of the binding; must not fail."""
