"""`vnode agent`: how one agent is put together. Read it in this order.

`command` has the flags, `config` the file. `shared` is what all parts look at: informers, links,
Targets. `replica` is what every replica does, above all to serve: `servers` (webhook, extender,
health) and `kubelet_api`. `term` is what only the leader does, made anew whenever this replica
becomes it, and gone without a trace when it no longer is.

The packages below do not know each other; what they share is handed to them here.
"""
