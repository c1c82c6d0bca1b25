"""Writes the kinds of docs/reference.md, their fields and columns, from the CRDs.

What stands between two markers is written; the rest of the page, annotations and labels, is kept by
hand, and a test compares it with `vnode.api.keys`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vnode.cli import manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference.md"
_BEGIN, _END = "<!-- kinds: hack/reference -->\n", "<!-- end of kinds -->\n"
_ORDER = (
    "Target",
    "ClusterTarget",
    "Source",
    "ClusterSource",
    "OverridePolicy",
    "ClusterOverridePolicy",
    "PlacementPolicy",
    "ClusterPlacementPolicy",
    "Rebalance",
    "AuthTokenRequest",
    "TargetSet",
    "ClusterTargetSet",
    "ClusterScore",
    "PodChaperon",
    "ClusterSummary",
)
_OBVIOUS = ("apiVersion", "kind", "metadata")
_OPAQUE = {"PodChaperon": ("spec", "status")}  # those of a Pod, which Kubernetes describes

Object = dict[str, Any]


def updated(page: str) -> str:
    """Return the page with its generated part updated."""
    head, _, rest = page.partition(_BEGIN)
    return head + _BEGIN + "\n" + "\n".join(_kinds()) + "\n" + _END + rest.partition(_END)[2]


def _kinds() -> Iterator[str]:
    for crd in sorted(manifests.crds(), key=lambda crd: _ORDER.index(crd["spec"]["names"]["kind"])):
        yield from _kind(crd["spec"])


def _kind(spec: Object) -> Iterator[str]:
    names = spec["names"]
    (version,) = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    short = ", ".join(f"`{name}`" for name in names.get("shortNames", ()))
    scope = "in a namespace" if spec["scope"] == "Namespaced" else "cluster-scoped"
    yield f"### {names['kind']}\n"
    yield f"`{spec['group']}/{version['name']}`, `{names['plural']}` ({short}), {scope}.\n"
    yield f"{_flat(schema['description'])}\n"
    yield "| Field | Type | |"
    yield "|---|---|---|"
    for path, field in _fields("", schema, _OPAQUE.get(names["kind"], ())):
        yield f"| `{path}` | {_type(field)} | {_text(field)} |"

    columns = version.get("additionalPrinterColumns", ())
    shown = [f"{c['name']}{' (wide)' if c.get('priority') else ''}" for c in columns]
    yield f"\nColumns of `kubectl get`: {', '.join(shown)}.\n"


def _fields(prefix: str, schema: Object, opaque: tuple[str, ...]) -> Iterator[tuple[str, Object]]:
    for name, field in schema.get("properties", {}).items():
        if not prefix and name in _OBVIOUS:
            continue

        path = prefix + name
        yield path, field
        if path in opaque:
            continue

        if field.get("type") == "array":
            yield from _fields(f"{path}[].", field["items"], ())
        else:
            yield from _fields(f"{path}.", field, ())


def _type(field: Object) -> str:
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"

    if field.get("x-kubernetes-int-or-string"):
        return "quantity"

    return str(field.get("format") or field.get("type", "object"))


def _text(field: Object) -> str:
    text = _flat(field.get("description", ""))
    if values := field.get("enum"):
        text += f" One of {', '.join(values)}."

    return text


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
