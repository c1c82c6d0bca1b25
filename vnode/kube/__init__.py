"""The client of API servers, informers, Events and credentials: nothing else calls an API server."""
