"""HTTP and MCP server. Run it with ``kg-memory serve``, or mount the app of `server.app.create_app` in your own."""
