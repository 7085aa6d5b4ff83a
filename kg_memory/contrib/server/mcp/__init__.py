"""The MCP server: ``kg-memory mcp`` over stdio, and ``/v1/mcp`` of ``kg-memory serve``; see ``docs/mcp.md``."""
