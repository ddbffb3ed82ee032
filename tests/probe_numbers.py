#!/usr/bin/env python3
"""The numbers of docs/benchmarks.md about live probes.

    tests/probe_numbers.py suite PLUMBLINE FLEET_JSON CONFORMANCE   our probe and the official conformance suite on the same servers
    tests/probe_numbers.py crowd PLUMBLINE [N]                      N servers (500) listed by one registry, probed by one crawl

PLUMBLINE is a release build, FLEET_JSON the list that a running fleet writes, CONFORMANCE the binary of the npm package
@modelcontextprotocol/conformance. Standard library only.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time


def settings(folder, more=""):
    text = '[net]\nallow_networks = ["127.0.0.0/8", "::1/128"]\n[net.manners]\npace_ms = 0\n' + more
    with open(os.path.join(folder, "plumbline.toml"), "w") as file:
        file.write(text)


def measured(command, **options):
    """CPU seconds, wall seconds, the output, and the largest resident size in MiB of one process."""
    began = time.time()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    out = process.stdout.read()
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime, time.time() - began, out, usage.ru_maxrss / 1024


def suite(plumbline, fleet, conformance):
    servers = [one for one in json.load(open(fleet))["servers"] if one["kind"] == "mcp"]
    # The suite speaks neither HTTP+SSE nor with a certificate authority of our own.
    servers = [one for one in servers if one["url"].startswith("http:") and one["url"].endswith(("/mcp", "/mcp/"))]
    with tempfile.TemporaryDirectory() as folder:
        settings(folder)
        totals = [0.0, 0.0]
        for one in servers:
            results = os.path.join(folder, "results")
            theirs = measured([conformance, "server", "--url", one["url"], "-o", results], cwd=folder)
            ours = measured([plumbline, "check", one["url"], "--format", "json"], cwd=folder)
            failed = [line.split()[1].rstrip(":") for line in theirs[2].splitlines() if line.startswith("✗")]
            said = sorted({f["rule"] for f in json.loads(ours[2])["findings"] if f["severity"] == "error"})
            totals = [totals[0] + theirs[0], totals[1] + ours[0]]
            print(f"{one['name']:22} suite {theirs[0]:5.2f} s CPU {theirs[1]:5.1f} s, {len(failed):2} scenarios failed;"
                  f" plumbline {ours[0]:5.3f} s CPU {ours[1]:4.1f} s, errors: {', '.join(said) or 'none'}", flush=True)
        print(f"CPU per server: suite {totals[0] / len(servers):.2f} s, plumbline {totals[1] / len(servers):.3f} s,"
              f" one {totals[0] / totals[1]:.0f}th")


def answer(message, path):
    """What a good server of 2025-11-25 without sessions says."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str) or message.get("id", 0) is None:
        return 400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}
    method, asked = message["method"], message.get("id")
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "tides", "title": "Tides", "version": "1.0.0"}},
        "ping": {},
        "tools/list": {"tools": [{"name": f"tool_{n}", "title": "Tool", "description": "Gives the tide table.",
                                  "inputSchema": {"type": "object", "properties": {}}} for n in range(20)]},
    }.get(method)
    if method.startswith("notifications/"):
        return 202, None
    if method == "server/discover":
        return 400, {"jsonrpc": "2.0", "id": asked, "error": {"code": -32600, "message": "no"}}
    if result is None:
        return 200, {"jsonrpc": "2.0", "id": asked, "error": {"code": -32601, "message": "no"}}
    return 200, {"jsonrpc": "2.0", "id": asked, "result": result}


async def serve(reader, writer, listing):
    try:
        while first := await reader.readline():
            verb, path = first.decode("latin-1").split(" ")[:2]
            headers = {}
            while (line := await reader.readline()) not in (b"\r\n", b""):
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.lower()] = value.strip()
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            if path.startswith("/v0.1/servers"):
                status, said = 200, listing()
            elif path != "/mcp":
                status, said = 404, {}
            elif verb != "POST":
                status, said = 405, None
            elif "origin" in headers or headers.get("content-type") != "application/json":
                status, said = 403, None
            else:
                try:
                    status, said = answer(json.loads(body), path)
                except ValueError:
                    status, said = 400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}}
            text = b"" if said is None else json.dumps(said).encode()
            label = "" if said is None else "Content-Type: application/json\r\n"
            writer.write(f"HTTP/1.1 {status} X\r\n{label}Content-Length: {len(text)}\r\n\r\n".encode() + text)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError, ValueError):
        pass
    finally:
        writer.close()


def crowd(plumbline, count):
    ports, ready = [], threading.Event()

    def listing():
        stamp = "2026-10-01T08:00:00Z"
        meta = {"status": "active", "publishedAt": stamp, "updatedAt": stamp, "isLatest": True}
        return {"metadata": {"count": count}, "servers": [{
            "server": {"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
                       "name": f"io.github.test/server-{port}", "description": "Gives the times of high water",
                       "version": "1.0.0", "remotes": [{"type": "streamable-http", "url": f"http://127.0.0.1:{port}/mcp"}]},
            "_meta": {"io.modelcontextprotocol.registry/official": meta}} for port in ports[1:]]}

    async def world():
        for _ in range(count + 1):
            server = await asyncio.start_server(lambda r, w: serve(r, w, listing), "127.0.0.1", 0)
            ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(world()), daemon=True).start()
    ready.wait()
    with tempfile.TemporaryDirectory() as folder:
        base = f"http://127.0.0.1:{ports[0]}"
        settings(folder, f'[crawl]\ncanaries = ["{base}/v0.1/servers"]\n'
                         f'[[registries]]\nname = "crowd"\nbase = "{base}"\npace_ms = 0\n')
        cpu, wall, out, size = measured([plumbline, "crawl", "--format", "json"], cwd=folder)
    print(out[-700:])
    print(f"{count} servers: {wall:.1f} s, {cpu:.1f} s CPU, {size:.0f} MiB resident at most")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    match sys.argv[1:]:
        case ["suite", plumbline, fleet, conformance]:
            suite(plumbline, fleet, conformance)
        case ["crowd", plumbline, *count]:
            crowd(plumbline, int(count[0]) if count else 500)
        case _:
            sys.exit(__doc__)
