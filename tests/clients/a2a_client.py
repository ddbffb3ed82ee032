"""Opens agent cards with the a2a-sdk that is installed beside this interpreter: reads the card, then makes a client from it.
usage: a2a_client.py BASE CASE...; prints one JSON object a case."""
import asyncio, json, sys
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

BINDINGS = ["JSONRPC", "HTTP+JSON"]


def config(client):
    try:
        return ClientConfig(httpx_client=client, supported_protocol_bindings=BINDINGS)
    except TypeError:  # before 1.0 the same option had another name
        return ClientConfig(httpx_client=client, supported_transports=BINDINGS)


async def open_card(client, url):
    card = await A2ACardResolver(client, url).get_agent_card()
    ClientFactory(config(client)).create(card)


async def main(base, cases):
    async with httpx.AsyncClient(timeout=20) as client:
        for case in cases:
            try:
                await open_card(client, f"{base}/{case}")
                error = None
            except Exception as caught:
                error = f"{type(caught).__name__}: {caught}"
            print(json.dumps({"case": case, "error": error}), flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
