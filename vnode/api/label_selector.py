"""A metav1.LabelSelector in a spec of ours: decoded strictly, compiled with the place of an error.

The objects of group vnode.dev are checked where they are read, since a CRD of an older release may
have let something through. Other people's selectors go to `selectors` as they are.
"""

from __future__ import annotations

import msgspec

from vnode.api import selectors
from vnode.api.errors import ConfigError
from vnode.api.selectors import Selector


class _StrictSelectorPart(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    pass


class LabelRequirement(_StrictSelectorPart, frozen=True):
    """One of a label selector's `matchExpressions`."""

    key: str
    operator: str
    values: tuple[str, ...] | None = None


class LabelSelector(_StrictSelectorPart, frozen=True):
    """A metav1.LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelRequirement, ...] | None = None

    def compiled(self, where: str, *, of_nodes: bool = False) -> Selector:
        """Compile it; ConfigError, which begins with `where`, if it is wrong.

        Labels of nodes may be compared as numbers, as in a pod's node affinity.
        """
        try:
            compiled = selectors.from_label_selector(msgspec.to_builtins(self))
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error

        assert compiled is not None, "only an absent selector has no outcome"
        numeric = [r for r in compiled.requirements if r.operator.value in ("Gt", "Lt")]
        if (unknown := numeric) and not of_nodes:
            raise ConfigError(f"{where}: {unknown[0].operator.value} is not for labels")

        return compiled
