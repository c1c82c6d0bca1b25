"""A scheduler plugin for vnode that goes by price."""
