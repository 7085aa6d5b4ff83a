"""The HTTP server: ``kg-memory serve``, or `kg_memory.contrib.server.app.create_app` inside an application of yours."""
