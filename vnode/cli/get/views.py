"""Defines what a resource of `vnode get` is, and the cells and columns that many have. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from vnode.api import objects, status_conditions
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli import tables
from vnode.cli.tables import Column
from vnode.insight import status_text
from vnode.kube.watching import ListOptions


@dataclass(frozen=True, slots=True)
class Row:
    """An object, with further inputs of its cells."""

    kind: Kind
    object: Object
    now: datetime
    targets: Mapping[str, str] = field(default_factory=dict)  # virtual node -> its target
    away: Collection[str] = ()  # virtual nodes whose targets do not answer
    pods: Objects | None = None  # the proxy pods, for resources that count them; None: not read


@dataclass(frozen=True, slots=True)
class View:
    """One resource of `vnode get`; `selections` returns the lists to read for a namespace.

    `counts_pods` says whether its rows need the proxy pods.
    """

    name: str
    selections: Callable[[str | None], list[ListOptions]]
    columns: tuple[Column, ...]
    namespaced: bool = True
    shows: Callable[[Object], bool] = lambda _obj: True
    kind_of: Callable[[Object], Kind] = tables.target_kind
    counts_pods: bool = False


def meta(read: Callable[[Object], str]) -> Callable[[Row], str]:
    """Make a cell of the object alone."""
    return lambda row: read(row.object)


def condition(type_: str, part: str) -> Callable[[Row], str]:
    """Make a cell of a part of a condition, such as its reason."""
    return lambda row: str((objects.condition(row.object, type_) or {}).get(part, ""))


def status_field(name: str) -> Callable[[Row], str]:
    """Make a cell of a field of the status."""
    return lambda row: str(objects.status(row.object).get(name, ""))


def _age(row: Row) -> str:
    return status_text.age(objects.created(row.object), row.now)


NAME: Final = Column("NAME", meta(objects.name), names_row=True)
NAMESPACE: Final = Column("NAMESPACE", meta(objects.namespace), names_row=True)
READY: Final = Column("READY", condition(status_conditions.READY, "status"))
REASON: Final = Column("REASON", condition(status_conditions.READY, "reason"))
MESSAGE: Final = Column("MESSAGE", condition(status_conditions.READY, "message"), wide=True)
AGE: Final = Column("AGE", _age)


def columns(view: View, *, everywhere: bool) -> tuple[Column, ...]:
    """Return the columns of a view, without the namespace where it is the same for all rows."""
    several = everywhere or len(view.selections("")) > 1  # the cluster's beside those of one
    return tuple(column for column in view.columns if several or column is not NAMESPACE)
