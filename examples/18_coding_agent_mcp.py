"""Give a coding agent memory over MCP, so that decisions of one session are known in the next.

It starts ``kg-memory mcp`` as Claude Code and Cursor do, and calls its tools as their models would. Needs the extra
``server``. Runs offline, without a key: ``python examples/18_coding_agent_mcp.py``
"""

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters

SERVER = StdioServerParameters(
    command=sys.executable,
    args=["-m", "kg_memory", "mcp", "-n", "example-project", "--user", "Ann", "--model", "offline"],
    env=dict(os.environ),
)


async def main() -> None:
    async with Client(SERVER) as client:
        print("Tools:", *(tool.name for tool in (await client.list_tools()).tools))
        await client.call_tool("remember", {"content": "We use PostgreSQL 16 in this project."})
        await client.call_tool("remember", {"content": "I prefer pytest to unittest."})
        answer = await client.call_tool("recall", {"question": "Which database do we use?"})
        print(answer.content[0].text)


asyncio.run(main())
