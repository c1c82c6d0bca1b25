"""Puts one agent together from the packages below, for `vnode agent`. Read it in this order.

`vnode.cli.agent` has the flags, `config` the file. `parts` says what a list of parts is. `shared`
has what all parts use: informers, links, Targets. `replica` is what every replica does, above all
serving: `servers` (webhook and extender), `kubelet_api` and `dashboard`. `term` is what only the
leader does: it is made anew whenever this replica becomes the leader, and nothing of it is left
afterwards.

The packages below do not import each other; what they share is passed to them here.
"""
