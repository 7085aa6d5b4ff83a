"""The MCP (Model Context Protocol) server: ``kg-memory mcp`` over stdio, ``/v1/mcp`` over HTTP; see ``docs/mcp.md``."""
