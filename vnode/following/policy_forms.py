"""Keeps what was made of each NetworkPolicy, so that it is made once for each of its versions.

Candidates ask which policies select them, and each reconcile asks for the copy. A policy may be as
large as an API server takes, and a namespace may have thousands: so both have bounds. What is
beyond them follows nowhere, and the pods that it may be about wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import constraint_size, objects, selectors
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.selectors import Selector
from vnode.following import copies, packed_specs, policy_copies

POLICIES: Final = 1_000
"""NetworkPolicies of a namespace whose pods may go to targets."""
REQUIREMENTS: Final = 5_000
"""Labels and expressions by which all policies of a namespace together select pods."""
SELECTING: Final = 200
"""Policies that select one pod."""
_EQUAL_KEPT: Final = 8


@dataclass(slots=True)
class PolicyForm:
    """What is known of one version of a NetworkPolicy."""

    uid: str
    version: str
    selector: Selector | None = None
    """None for one that cannot be read or is too large: it selects all."""
    problem: str = ""
    """Why it does not follow."""
    delegates: Selector | None = None
    """What its copy selects; None until somebody asks."""

    @property
    def weight(self) -> int:
        """How many comparisons it may take to tell whether it selects a pod."""
        return 1 + (len(self.selector.requirements) if self.selector else 0)

    def selects(self, labels: dict[str, str]) -> bool:
        """Tell whether it selects pods with these labels."""
        return self.selector is None or self.selector.matches(labels)


@dataclass(slots=True, eq=False)
class PolicyCopy:
    """The copy of one version, for delegates of some labels."""

    uid: str
    version: str
    body: Object
    marks: str
    equal: tuple[Object, ...] = ()
    """Copies of targets, as stored, that were compared with it and found equal; the latest few."""


class PolicyForms:
    """Forms and copies by the key of their policy."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._forms: dict[str, PolicyForm] = {}
        # By the labels of delegates; all of one version, and no more than there are of those.
        self._copies: dict[str, dict[tuple[tuple[str, str], ...], PolicyCopy]] = {}

    def __len__(self) -> int:
        return len(self._forms.keys() | self._copies.keys())

    def forget(self, key: str) -> None:
        """Drop what is known of a policy that is gone."""
        self._forms.pop(key, None)
        self._copies.pop(key, None)

    def known(self, policy: Object) -> PolicyForm | None:
        """Return the form of that version, None if it has to be made."""
        form = self._forms.get(objects.key(policy))
        return form if form is not None and _is_of(form, policy) else None

    def of(self, policy: Object) -> PolicyForm:
        """Return the form of a policy."""
        form = self.known(policy)
        if form is None:
            form = self._forms[objects.key(policy)] = form_of(policy)

        return form

    def delegates(self, policy: Object) -> Selector:
        """Return what the copy of a policy selects; ConfigError if there is none."""
        form = self._sound(policy)
        if form.delegates is None:
            form.delegates = policy_copies.delegates(policy, self._identity)

        return form.delegates

    def copy(self, policy: Object, source: Mapping[str, str]) -> PolicyCopy:
        """Return the copy of a policy, for delegates of these labels; ConfigError if there is none.

        Its body is shared: nobody may change it.
        """
        self._sound(policy)
        key, labels = objects.key(policy), tuple(sorted(source.items()))
        known = self._copies.get(key, {})
        if any(not _is_of(copy, policy) for copy in known.values()):
            known = {}

        if labels not in known:
            whole = packed_specs.unpack(policy)
            body = policy_copies.policy(whole, self._identity, source)
            uid, version = objects.uid(policy), objects.resource_version(policy)
            known[labels] = PolicyCopy(uid, version, body, copies.marks(body))
            self._copies[key] = known

        return known[labels]

    def is_up_to_date(self, policy: Object, wanted: Object, present: Object) -> bool:
        """Tell whether a target's copy has all of one that `copy` has returned."""
        known = self._copies.get(objects.key(policy), {})
        made = next((each for each in known.values() if each.body is wanted), None)
        if made is not None and any(equal is present for equal in made.equal):
            return True

        is_equal = copies.has_all_of(present, wanted, objects.spec(wanted))
        if is_equal and made is not None:
            made.equal = (present, *made.equal)[:_EQUAL_KEPT]

        return is_equal

    def has_changed(self, policy: Object) -> bool:
        """Tell whether a policy had a copy, and has another version since."""
        known = self._copies.get(objects.key(policy), {})
        return any(not _is_of(copy, policy) for copy in known.values())

    def _sound(self, policy: Object) -> PolicyForm:
        form = self.of(policy)
        if form.problem:
            raise ConfigError(f"networkpolicy/{objects.name(policy)}: {form.problem}")

        return form


def _is_of(made: PolicyForm | PolicyCopy, policy: Object) -> bool:
    version, uid = objects.resource_version(policy), objects.uid(policy)
    return made.version == version and made.uid == uid


def trim(policy: Object) -> Object:
    """Return what is kept of a policy of the source."""
    return {"metadata": objects.metadata(policy), **packed_specs.pack(policy, _short)}


def _short(spec: Object) -> Object:
    selector = spec.get("podSelector") or {}
    is_small = constraint_size.has_at_most(constraint_size.VALUES, selector)
    return {"podSelector": selector} if is_small else {}


def form_of(policy: Object) -> PolicyForm:
    """Return the form of a policy, made anew."""
    form = PolicyForm(objects.uid(policy), objects.resource_version(policy))
    form.problem = packed_specs.problem(policy)
    spec = objects.spec(policy if form.problem else packed_specs.unpack(policy))
    try:
        form.selector = _selector(spec)
        if not form.problem:
            _check_peers(spec)
    except ConfigError as error:
        form.problem = str(error)

    return form


def _selector(spec: Object) -> Selector | None:
    """Return whom a policy selects; ConfigError if it takes long to tell."""
    selector = spec.get("podSelector") or {}
    listed = [*(selector.get("matchLabels") or ()), *(selector.get("matchExpressions") or ())]
    constraint_size.check(listed, selector, "spec.podSelector")
    return selectors.from_label_selector(selector)


def _check_peers(spec: Object) -> None:
    """Raise ConfigError if a policy says more about peers than is copied."""
    constraint_size.check((), list(_selectors(spec)), "of peers, podSelector")


def _selectors(spec: Object) -> Iterator[Object]:
    for rules, peers in policy_copies.DIRECTIONS:
        for rule in spec.get(rules) or ():
            for peer in rule.get(peers) or ():
                if selector := peer.get("podSelector"):
                    yield selector
