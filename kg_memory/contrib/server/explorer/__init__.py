"""The explorer: the page of the server, and the few routes that only it needs."""
