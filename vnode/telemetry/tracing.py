"""Defines the setting `tracing` of the agent's configuration, and opens what sends spans.

OpenTelemetry is imported here and by `otlp` only where a collector is named: without one there is
no sender, nothing subscribes to pods for it, and the library need not be there.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import msgspec
import yaml

from vnode.api.errors import ConfigError
from vnode.telemetry.span_sender import SpanSender

_PATH: Final = "/v1/traces"
_NEEDED: Final = "opentelemetry.exporter"
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class TracingConfig(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True
):
    """Where spans of pods' ways go, and of how many pods."""

    endpoint: str = ""
    """The address of a collector, for OTLP by HTTP; none: no spans."""
    sampling_ratio: float = 1.0
    """Of how many pods, from 0 to 1; both clusters choose the same ones."""
    headers_file: str = ""
    """A file of `NAME: VALUE` lines, which are sent with spans, as a token."""
    ca_file: str = ""
    """Whom to believe that it is the collector; by default public authorities."""

    @property
    def url(self) -> str:
        """The address to which spans are posted: an endpoint without a path gets the usual one."""
        has_path = urlsplit(self.endpoint).path not in ("", "/")
        return self.endpoint if has_path else self.endpoint.rstrip("/") + _PATH

    def check(self) -> None:
        """Raise ConfigError, with the cure, for what cannot work."""
        if not 0 <= self.sampling_ratio <= 1:
            raise ConfigError(
                "tracing.samplingRatio must be from 0 to 1, as 0.1 for every tenth pod"
            )

        if not self.endpoint:
            if self != TracingConfig():
                raise ConfigError(
                    "tracing has no endpoint, so that nothing is sent: name a collector, as "
                    "http://collector.observability:4318, or leave tracing out"
                )

            return

        parts = _parts(self.endpoint)
        if parts is None:
            raise ConfigError(
                f"tracing.endpoint is {self.endpoint!r}: it is a collector's address for OTLP by "
                "HTTP, as http://collector.observability:4318 (not its port 4317, which is gRPC's)"
            )

        if parts.username or parts.password:
            raise ConfigError(
                "tracing.endpoint has credentials: put them into tracing.headersFile, as "
                '"Authorization: Bearer TOKEN"'
            )


def _parts(endpoint: str) -> SplitResult | None:
    """Return the parts of an address of HTTP, None if it is none."""
    try:
        parts = urlsplit(endpoint)
        return (
            parts
            if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
            else None
        )
    except ValueError:  # of a port that is none
        return None


def opened(config: TracingConfig) -> SpanSender | None:
    """Return what sends spans, None if none are to be sent.

    Raises ConfigError if the library is missing, or a file cannot be read. Reads files: call it
    before the event loop runs.
    """
    if not config.endpoint or not config.sampling_ratio:
        return None

    if importlib.util.find_spec("opentelemetry") is None or not importlib.util.find_spec(_NEEDED):
        raise ConfigError(
            "tracing.endpoint is set, and OpenTelemetry's library is not installed: "
            "pip install 'vnode-kubernetes[tracing]', or leave tracing out"
        )

    from vnode.telemetry import otlp

    if config.ca_file and not Path(config.ca_file).is_file():
        raise ConfigError(f"tracing.caFile: there is no file {config.ca_file}")

    export = otlp.exporter(config.url, read_headers(config.headers_file), config.ca_file)
    return SpanSender(export, config.sampling_ratio)


def read_headers(file: str) -> dict[str, str]:
    """Read the headers of a file; ConfigError, which does not quote them, if they are none."""
    if not file:
        return {}

    try:
        found: Any = yaml.load(Path(file).read_text(), yaml.BaseLoader)  # noqa: S506 # all is text
    except OSError as error:
        raise ConfigError(f"tracing.headersFile: cannot read {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError):
        found = None

    if not isinstance(found, dict) or not all(
        isinstance(name, str)
        and _HEADER.fullmatch(name)
        and isinstance(value, str)
        and value.isprintable()
        and value.isascii()
        for name, value in found.items()
    ):
        raise ConfigError(
            f"tracing.headersFile: {file} must have lines of the form NAME: VALUE, with headers of "
            "HTTP"
        )

    return {str(name): str(value) for name, value in found.items()}
