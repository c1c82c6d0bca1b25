"""Defines `vnode cordon`, `uncordon` and `drain`, which take the name of a Target for a node's."""
