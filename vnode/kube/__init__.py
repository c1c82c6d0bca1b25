"""The client of API servers, informers, Events and credentials: nothing else calls a server."""
