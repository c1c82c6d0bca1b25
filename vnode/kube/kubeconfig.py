"""Parses kubeconfigs: text in, a `Kubeconfig` out, or a ConfigError that names the cure. Pure.

Each text is parsed once, where it is read. Endpoint, expiry, fingerprint and renewal of its
credentials are made of the parsed value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from vnode.api import documents, enumeration
from vnode.api.errors import ConfigError

EXPORT: Final = "kubectl config view --flatten --minify --raw"  # without --raw it omits secrets
ENCRYPTED: Final = (
    "client-key is encrypted: use a key that needs no password (openssl pkey -in KEY)"
)
_SHOWN: Final = 5  # names of contexts, users or clusters in an error


class FieldError(ConfigError):
    """A field of a cluster or a user cannot be used; `problem` begins with its name.

    ClusterProfiles have such fields as well, and say whose they are in words of their own.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"the kubeconfig's {problem}")
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One context of a kubeconfig, with its cluster and user; `user` is empty if it has none.

    `contexts` has all contexts by name, as they are listed. `text` is what was parsed, empty if
    several files were merged. Relative paths belong to the folder `base`.
    """

    context: dict[str, Any]
    cluster: dict[str, Any] = field(repr=False)
    user: dict[str, Any] = field(repr=False)
    contexts: tuple[tuple[Any, dict[str, Any]], ...] = field(repr=False)
    text: bytes = field(default=b"", repr=False)
    base: Path = Path()

    @classmethod
    def parse(cls, text: bytes | str, context: str | None = None, base: Path = Path()) -> Self:
        """Parse YAML or JSON and choose a context: the current one unless one is named.

        ConfigError names what is missing, and never quotes credentials.
        """
        try:
            data = text.encode() if isinstance(text, str) else text
            document = documents.parse(data.decode())
        except (ConfigError, UnicodeError) as error:
            raise ConfigError(f"the kubeconfig is neither YAML nor JSON: {error}") from error

        if not isinstance(document, dict):
            raise ConfigError(
                f"the kubeconfig is not a mapping with clusters, contexts and users, as {EXPORT} "
                "prints it"
            )

        return cls.choose(document, context, base, data)

    @classmethod
    def choose(
        cls,
        document: dict[str, Any],
        context: str | None = None,
        base: Path = Path(),
        text: bytes = b"",
    ) -> Self:
        """Choose a context of a kubeconfig that is parsed already."""
        name = context or document.get("current-context")
        if not name:
            listed = _names_of(document.get("contexts") or [])
            raise ConfigError(
                f"the kubeconfig has no current-context: set one, or name a context; {listed}"
            )

        chosen = _named(document, "contexts", str(name), "context")
        cluster = _named(document, "clusters", str(chosen.get("cluster", "")), "cluster")
        user = chosen.get("user")
        return cls(
            chosen,
            cluster,
            _named(document, "users", str(user), "user") if user else {},
            tuple(map(_context, document["contexts"])),
            text,
            base,
        )

    @property
    def namespace(self) -> str:
        """The namespace of the context."""
        return str(self.context.get("namespace") or "default")

    @property
    def token(self) -> str:
        """The user's token, "" if it has none inline."""
        return str(self.user.get("token") or "")


def _named(document: dict[str, Any], plural: str, name: str, kind: str) -> dict[str, Any]:
    entries = document.get(plural) or []
    if isinstance(entries, list):
        for entry in entries:
            if isinstance(entry, dict) and entry.get("name") == name:
                found = entry.get(kind)
                return found if isinstance(found, dict) else {}

    raise ConfigError(f"the kubeconfig has no {kind} named {name!r}; {_names_of(entries)}")


def _names_of(entries: Any) -> str:
    """List the first names, of which the author may have meant one."""
    known = entries if isinstance(entries, list) else []
    names = [repr(str(entry.get("name"))) for entry in known if isinstance(entry, dict)]
    return f"it has {enumeration.some(names, _SHOWN) or 'none'}"


def _context(entry: Any) -> tuple[Any, dict[str, Any]]:
    found = entry.get("context") if isinstance(entry, dict) else None
    return (entry.get("name"), found) if isinstance(found, dict) else (None, {})
