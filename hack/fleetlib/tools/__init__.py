"""Where the programs of a cluster come from: found, downloaded or built, then kept in the cache."""
