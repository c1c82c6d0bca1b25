"""Tools for working on vnode: binaries, local clusters, the demo. Nothing here is part of the product."""
