"""The plugins that come with vnode: one file each, seeing `vnode.scheduling` and `vnode.api` only.

`defaults` has all of them, and says which take part by default, in which order and weight.
"""
