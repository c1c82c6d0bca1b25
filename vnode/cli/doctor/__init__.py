"""`vnode doctor`: checks a cluster and its connections, a line each, with the cure of each failure.

`examining` and `trying` read, `facts` is what they bring; `cluster_checks` and `connection_checks`
judge it: pure.
"""
