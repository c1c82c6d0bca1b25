"""Downloads official releases, verified by SHA-256. Fails fast without internet access."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import tarfile
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hack.fleetlib import progress
from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.fleetlib.tools.definitions import Tool

CONNECT_TIMEOUT = 4.0
READ_TIMEOUT = 60.0


def fill(template: str, tool: Tool, system: str, machine: str) -> str:
    return template.format(version=tool.version, os=system, arch=machine)


def mirrored(url: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return `url`, or its copy below `$VNODE_DOWNLOAD_MIRROR/<host>` if a mirror is set."""
    mirror = environ.get("VNODE_DOWNLOAD_MIRROR")
    return f"{mirror.rstrip('/')}/{url.removeprefix('https://')}" if mirror else url


def expected_sum(text: str, filename: str) -> str:
    """Return the SHA-256 of `filename` that `text` holds; raise FleetError if it holds none.

    `text` is one bare sum, lines of sum and name, or GitHub's description of the release.
    """
    if text.lstrip().startswith("{"):
        text = _lines_of_digests(text)
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 1 or (len(fields) >= 2 and fields[1].lstrip("*") == filename):
            return _checked(fields[0], filename)
    raise FleetError(f"the checksum file has no line for {filename}")


def _lines_of_digests(release: str) -> str:
    """Convert GitHub's description of a release, in JSON, to a checksum file of its assets."""
    try:
        assets = json.loads(release).get("assets", ())
    except json.JSONDecodeError as error:
        raise FleetError(f"the checksum file cannot be read: {error}") from error
    sums = ((str(asset.get("digest")).removeprefix("sha256:"), asset["name"]) for asset in assets)
    return "\n".join(f"{digest}  {name}" for digest, name in sums)


def _checked(digest: str, filename: str) -> str:
    if len(digest) != 64 or any(c not in "0123456789abcdef" for c in digest.lower()):
        raise FleetError(f"the checksum file of {filename} holds no SHA-256: {digest[:80]!r}")
    return digest.lower()


def reachable(url: str, timeout: float = CONNECT_TIMEOUT) -> bool:
    """Tell whether the host of `url` accepts a connection within `timeout` seconds.

    Asked first, because urllib knows one time-out only and a slow download needs a long one.
    A proxy configured by environment is taken as reachable.
    """
    parts = urlsplit(url)
    proxies = urllib.request.getproxies()
    if parts.scheme in proxies and not urllib.request.proxy_bypass(parts.hostname or ""):
        return True
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout).close()
    except OSError:
        return False
    return True


def fetch(tool: Tool, destination: Path, system: str, machine: str) -> None:
    """Download `tool` into the folder `destination`; FleetError unless it can be verified."""
    if tool.release is None:
        raise FleetError(f"{tool.name} is not published")
    url = mirrored(fill(tool.release.url, tool, system, machine))
    if not reachable(url):
        raise FleetError(f"{urlsplit(url).hostname} cannot be reached")
    filename = url.rsplit("/", 1)[-1]
    checksum = mirrored(fill(tool.release.checksum, tool, system, machine))
    digest = expected_sum(_read_text(checksum), filename)
    with tempfile.TemporaryDirectory(prefix="vnode-download-", dir=destination) as folder:
        file = Path(folder) / filename
        with progress.reported(f"downloading {tool.name} {tool.version}", lambda: _size(file)):
            _save(url, file)
        verify(file, digest)
        if tool.release.member:
            _extract(
                file, fill(tool.release.member, tool, system, machine), destination / tool.name
            )
        else:
            file.rename(destination / tool.name)
    (destination / tool.name).chmod(0o755)


def verify(file: Path, digest: str) -> None:
    """Raise FleetError unless the SHA-256 of `file` is `digest` (lower-case hexadecimal)."""
    with file.open("rb") as content:
        actual = hashlib.file_digest(content, "sha256").hexdigest()
    if actual != digest:
        raise FleetError(f"{file.name}: SHA-256 is {actual}, published is {digest}: not used")


def _read_text(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=READ_TIMEOUT) as answer:  # noqa: S310
            return str(answer.read(4_000_000).decode())
    except (urllib.error.URLError, OSError, UnicodeDecodeError) as error:
        _close(error)
        raise FleetError(f"cannot read {url}: {error}") from error


def _save(url: str, file: Path) -> None:
    try:
        with (
            urllib.request.urlopen(url, timeout=READ_TIMEOUT) as answer,  # noqa: S310
            file.open("wb") as output,
        ):
            shutil.copyfileobj(answer, output)
    except (urllib.error.URLError, OSError) as error:
        _close(error)
        raise FleetError(f"cannot download {url}: {error}") from error


def _close(error: Exception) -> None:
    """Close the answer that an error of HTTP holds; since Python 3.14 it warns if nobody does."""
    if isinstance(error, urllib.error.HTTPError):
        error.close()


def _size(file: Path) -> str:
    return f"{file.stat().st_size / 1e6:.0f} MB" if file.exists() else ""


def _extract(archive: Path, member: str, output: Path) -> None:
    with tarfile.open(archive) as content:
        try:
            source = content.extractfile(member)
        except KeyError:
            source = None
        if source is None:
            raise FleetError(f"{archive.name} holds no file {member}")
        with output.open("wb") as target:
            shutil.copyfileobj(source, target)
