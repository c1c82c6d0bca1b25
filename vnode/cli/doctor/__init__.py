"""Defines `vnode doctor`: checks a cluster and its connections, and names a cure for each failure.

`examining` (a cluster) and `trying` (a connection) read the `facts`; `cluster_checks` and
`connection_checks`, which are pure, make `findings` of them, with `cures`.
"""
