"""vnode: a cluster sees each other cluster as one Node."""

from __future__ import annotations

__version__ = "0.2.0"
