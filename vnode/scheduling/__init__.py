"""The scheduling framework for proxy pods: queue, cache, cycle, plugins."""
