"""Opens MCP servers with the mcp SDK that is installed beside this interpreter: the handshake, then the list a case is about.
usage: mcp_client.py BASE CASE:LIST...; prints one JSON object a case."""
import asyncio, json, sys
from datetime import timedelta
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def open_server(url, wanted):
    async with streamablehttp_client(url) as (read, write, _):
        async with ClientSession(read, write, read_timeout_seconds=timedelta(seconds=5)) as session:
            await session.initialize()
            if wanted:
                await getattr(session, f"list_{wanted}")()


def said(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def main(base, cases):
    for case in cases:
        name, wanted = case.split(":")
        try:
            await asyncio.wait_for(open_server(f"{base}/{name}/mcp", wanted), 15)
            error = None
        except BaseException as caught:
            error = said(caught)
        print(json.dumps({"case": name, "error": error}), flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
