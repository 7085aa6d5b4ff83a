"""The HTTP and MCP server: run ``kg-memory serve``, or mount the application of `server.app.create_app` in yours."""
