"""Tools for working on vnode: binaries, local clusters, the demo. No part of the product."""
