"""The commands of `vnode`, a folder or module each."""
