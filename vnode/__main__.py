"""`python -m vnode` is `vnode`."""

from __future__ import annotations

from vnode.cli.main import main

if __name__ == "__main__":
    main()
