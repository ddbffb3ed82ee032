#!/usr/bin/env python3
"""Load on every page, feed, badge and list of a running Plumbline: so many requests a second, whatever the answers take.

usage: load.py BASE [--rate 50] [--seconds 60] [--readers 200 --pid PID] [--table]
       load.py BASE --pid PID --work 20 [--table]      one after another, and the processor time of the server for each
       load.py http://127.0.0.1:8080 --seconds 120 --table

Only for an instance on this machine. Addresses are found by reading the instance: of each kind several, so that nothing is asked
twice in a row. Requests start on time even when earlier ones are late, and the time counts from when one was due, so that waiting in
line is seen. Prints p50, p95 and p99 of the first byte and of the whole by kind; ends with status 1 when anything failed or a promise
was missed. With --readers so many listen to events meanwhile, and the memory that they cost is told (--pid: the server)."""
import argparse
import asyncio
import json
import pathlib
import random
import re
import sys
import time
import urllib.parse
import urllib.request

# Milliseconds at p95: lists, charts, badges; first byte of the worst page at p99.
PROMISED = {"list": 50, "chart": 80, "badge": 20}
FIRST_BYTE = 150


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--readers", type=int, default=0)
    parser.add_argument("--pid", type=int)
    parser.add_argument("--work", type=int, default=0, help="requests of each kind, one after another, for their processor time")
    parser.add_argument("--table", action="store_true", help="as a table for the documentation")
    return parser.parse_args()


class Instance:
    def __init__(self, base):
        self.base = base.rstrip("/")

    def json(self, path):
        with urllib.request.urlopen(urllib.request.Request(self.base + path, headers={"Accept": "application/json"})) as answer:
            return json.load(answer)

    def text(self, path):
        with urllib.request.urlopen(urllib.request.Request(self.base + path, headers={"Accept": "text/html"})) as answer:
            return answer.read().decode()


def kinds(instance):
    """What is asked for: name, which promise holds, addresses."""
    quote = urllib.parse.quote
    targets, cursor = [], ""
    for _ in range(4):
        page = instance.json(f"/api/v1/targets?limit=200&fields=id,key,kind{cursor}")
        targets += page["items"]
        if "next" not in page:
            break
        cursor = "&cursor=" + quote(page["next"])
    chosen = random.sample(targets, min(40, len(targets)))
    pages = {one["id"]: instance.text(f"/targets/{one['id']}") for one in chosen}
    found = lambda pattern: sorted({hit for page in pages.values() for hit in re.findall(pattern, page)})
    documents, owners, hosts = found(r'"(/documents/[0-9a-f]{64})'), found(r'"(/owners/[^"]+)'), found(r'"(/hosts/[^"]+)')
    findings = [f"/findings/{row['id']}" for one in chosen[:20] for row in instance.json(f"/api/v1/targets/{one['id']}/findings")["items"][:2]]
    rules = [row["rule"] for row in instance.json("/api/v1/rules?fields=rule,failing")["items"] if row["failing"]]
    cohorts = [row["slug"] for row in instance.json("/api/v1/cohorts?fields=slug")["items"]]
    crawls = [row["id"] for row in instance.json("/api/v1/crawls?limit=50&fields=id")["items"]]
    deploys = [row["id"] for row in instance.json("/api/v1/deploys?limit=50")["items"]]
    incidents = [row["id"] for row in instance.json("/api/v1/incidents?limit=50")["items"]]
    of_target = lambda tail="": [f"/targets/{one['id']}{tail}" for one in chosen]
    onward, address = [], "/targets"
    for _ in range(5):
        link = re.search(r'href="(/targets\?[^"]*after=[^"]*)"', instance.text(address))
        if not link:
            break
        address = link.group(1).replace("&amp;", "&").replace("&#38;", "&")
        onward.append(address)
    words = [one["key"].split("/")[-1].split(".")[0][:4] for one in chosen]
    chart, listing, badge = "chart", "list", "badge"
    return [(name, promise, addresses) for name, promise, addresses in [
        ("/", chart, ["/"]),
        ("/targets", listing, ["/targets", "/targets?q=headline%3Ablocked", "/targets?q=reach%3Adown", "/targets?sort=changed", "/targets?sort=name",
                               "/targets?q=kind%3Aa2a-agent", "/targets?q=-headline%3Asound%20severity%3Aerror", "/targets?q=changed%3A%3C7d"]),
        ("/targets, words", listing, [f"/targets?q={quote(word)}" for word in words]),
        ("/targets, by rule", listing, [f"/targets?q={quote('rule:' + rule)}" for rule in rules[:20]]),
        ("/targets, next pages", listing, onward),
        ("/targets/{id}", chart, of_target()),
        ("/targets/{id}/timeline", chart, of_target("/timeline")),
        ("/targets/{id}/findings", chart, of_target("/findings")),
        ("/targets/{id}/documents", chart, of_target("/documents")),
        ("/targets/{id}/diff", chart, of_target("/diff")),
        ("/targets/{id}/checks", chart, of_target("/checks")),
        ("/targets/{id}/session", listing, of_target("/session")),
        ("/documents/{hash}", listing, documents),
        ("/findings/{id}", chart, findings),
        ("/rules", listing, ["/rules", "/rules?family=a2a"]),
        ("/rules/{rule}", chart, [f"/rules/{rule}" for rule in rules]),
        ("/rules/coverage", listing, ["/rules/coverage", "/rules/mcp-requirements", "/clients"]),
        ("/prevalence", chart, ["/prevalence", "/prevalence?facts=1", "/prevalence?family=mcp&days=365"] + [f"/prevalence?cohort={slug}" for slug in cohorts[:8]]),
        ("/cohorts", listing, ["/cohorts"]),
        ("/cohorts/{slug}", chart, [f"/cohorts/{slug}" for slug in cohorts]),
        ("/regressions", chart, ["/regressions", "/regressions?q=severity%3Aerror"]),
        ("/regressions/{week}", listing, ["/regressions/" + time.strftime("%G-w%V", time.gmtime(time.time() - 7 * 86400 * n)) for n in range(6)]),
        ("/deploys", listing, ["/deploys"]),
        ("/deploys/{id}", listing, [f"/deploys/{n}" for n in deploys]),
        ("/incidents", listing, ["/incidents"]),
        ("/incidents/{id}", listing, [f"/incidents/{n}" for n in incidents]),
        ("/crawls", listing, ["/crawls"]),
        ("/crawls/{id}", chart, [f"/crawls/{n}" for n in crawls[:20]]),
        ("/compare", chart, ["/compare"]),
        ("/owners/{o}", chart, owners),
        ("/hosts/{h}", chart, hosts),
        ("/search", listing, [f"/search?q={quote(word)}" for word in words]),
        ("/almanac/{month}", chart, ["/almanac/" + time.strftime("%Y-%m", time.gmtime(time.time() - 31 * 86400 * n)) for n in range(3)]),
        ("/status", listing, ["/status"]),
        ("/changes", listing, ["/changes", "/methodology"]),
        ("/check", listing, ["/check", "/onboarding", "/api", "/about/crawler"]),
        ("/settings/about", listing, ["/settings/about"]),
        ("/alerts", listing, ["/alerts", "/routes", "/silences", "/maintenance", "/waivers", "/webhooks"]),
        ("badges", badge, [f"/badges/target/{one['id']}.svg" for one in chosen] + [f"/badges{owner}.svg".replace("/owners/", "/owner/") for owner in owners[:5]]),
        ("feeds", listing, ["/feeds/regressions.atom", "/feeds/releases.atom"] + [f"/feeds/targets/{one['id']}.atom" for one in chosen[:5]]),
        ("/api/v1/targets", listing, ["/api/v1/targets?limit=50", "/api/v1/targets?limit=50&q=headline%3Ablocked"]),
        ("/api/v1/…/prevalence", listing, [f"/api/v1/cohorts/{slug}/prevalence" for slug in cohorts[:8]]),
        ("/api/v1/rules/…/days", listing, [f"/api/v1/rules/{rule}/days" for rule in rules[:20]]),
        ("/api/v1/events", listing, ["/api/v1/events?limit=100", "/api/v1/events?after=1000&type=finding.*"]),
        ("/v0.1/servers", listing, ["/v0.1/servers", "/v0.1/servers?verdict=blocked", "/v0.1/servers?search=" + quote(words[0])]),
        ("/metrics", listing, ["/metrics"]),
        ("/healthz", badge, ["/healthz", "/readyz"]),
    ] if addresses]


class Pool:
    """Connections that are kept open."""

    def __init__(self, host, port):
        self.host, self.port, self.free = host, port, []

    async def ask(self, path):
        """Status, first byte and end as moments, bytes on the wire."""
        for attempt in (0, 1):
            reader, writer = self.free.pop() if self.free else await asyncio.open_connection(self.host, self.port, limit=1 << 20)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAccept: text/html\r\nAccept-Encoding: gzip\r\n\r\n".encode())
                head = await reader.readuntil(b"\r\n\r\n")
                first = time.perf_counter()
                break
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                if attempt:
                    raise
        status = int(head.split(b" ", 2)[1])
        length = re.search(rb"(?i)content-length: (\d+)", head)
        size = 0
        if length:
            size = len(await reader.readexactly(int(length.group(1))))
        elif b"chunked" in head.lower():
            while True:
                chunk = int((await reader.readline()).strip(), 16)
                await reader.readexactly(chunk + 2)
                size += chunk
                if not chunk:
                    break
        self.free.append((reader, writer))
        return status, first, time.perf_counter(), size


async def listen(host, port):
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET /api/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0], head
    return reader, writer


def resident(pid):
    """Megabytes in memory, each page once: connections that map the database share its pages, and RSS would count them again."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def processor_ms(pid):
    """What all threads of a process have worked, in milliseconds: other work on the machine does not count."""
    total = 0
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((thread / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / 1e6


async def work(options, asked, pool):
    """Processor time and the shortest time on the clock, by kind."""
    line = "| {} | {:.1f} | {:.1f} |" if options.table else "{:28} {:6.1f} ms of work, {:6.1f} ms at best"
    total = 0.0
    for name, _, addresses in asked:
        before, best = processor_ms(options.pid), float("inf")
        for n in range(options.work):
            began = time.perf_counter()
            await pool.ask(addresses[n % len(addresses)])
            best = min(best, (time.perf_counter() - began) * 1000)
        worked = (processor_ms(options.pid) - before) / options.work
        total += worked
        print(line.format(name, worked, best))
    print(f"mean of all kinds {total / len(asked):.1f} ms of work a request")
    return 0


def at(times, share):
    times = sorted(times)
    return times[min(len(times) - 1, int(len(times) * share))] if times else 0.0


async def run(options):
    base = urllib.parse.urlsplit(options.base)
    if base.hostname not in ("127.0.0.1", "localhost", "::1"):
        sys.exit("only for an instance on this machine")
    asked = kinds(Instance(options.base))
    pool = Pool(base.hostname, base.port)
    for _, _, addresses in asked:
        await pool.ask(addresses[0])
    if options.work:
        return await work(options, asked, pool)
    seen = {name: {"first": [], "whole": [], "bytes": [], "failed": []} for name, _, _ in asked}
    listening, before = [], resident(options.pid) if options.pid else 0
    for _ in range(options.readers):
        listening.append(await listen(base.hostname, base.port))
    if options.readers and options.pid:
        await asyncio.sleep(2)
        print(f"{options.readers} readers of events cost {resident(options.pid) - before:.1f} MB")

    async def one(name, path, due):
        try:
            status, first, end, size = await pool.ask(path)
        except Exception as error:  # whatever it was, it was no answer
            seen[name]["failed"].append(f"{path}: {error!r}")
            return
        if status != 200:
            seen[name]["failed"].append(f"{path}: {status}")
        seen[name]["first"].append((first - due) * 1000)
        seen[name]["whole"].append((end - due) * 1000)
        seen[name]["bytes"].append(size)

    count, began, running, most = int(options.rate * options.seconds), time.perf_counter() + 0.1, set(), 0.0
    for n in range(count):
        name, _, addresses = asked[n % len(asked)]
        due = began + n / options.rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        task = asyncio.create_task(one(name, random.choice(addresses), due))
        running.add(task)
        task.add_done_callback(running.discard)
        if options.pid and n % 50 == 0:
            most = max(most, resident(options.pid))
    if running:
        await asyncio.wait(running)
    missed, failures = [], []
    line = "| {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} |" if options.table else "{:28} {:5} first p95 {:6.1f} p99 {:6.1f}  whole p50 {:6.1f} p95 {:6.1f} ms  {:6.1f} KB"
    for name, promise, _ in asked:
        mine = seen[name]
        failures += mine["failed"]
        size = max(mine["bytes"], default=0) / 1000
        print(line.format(name, len(mine["whole"]), at(mine["first"], 0.95), at(mine["first"], 0.99), at(mine["whole"], 0.5), at(mine["whole"], 0.95), size))
        if at(mine["whole"], 0.95) > PROMISED[promise]:
            missed.append(f"{name}: p95 {at(mine['whole'], 0.95):.0f} ms, promised {PROMISED[promise]}")
        if at(mine["first"], 0.99) > FIRST_BYTE:
            missed.append(f"{name}: first byte {at(mine['first'], 0.99):.0f} ms at p99, promised {FIRST_BYTE}")
        if size > (60 if name == "/" else 150):
            missed.append(f"{name}: {size:.0f} KB on the wire")
    every = [time for mine in seen.values() for time in mine["whole"]]
    print(f"{len(every)} requests at {options.rate:.0f} a second: p50 {at(every, 0.5):.1f}, p95 {at(every, 0.95):.1f}, p99 {at(every, 0.99):.1f} ms; {len(failures)} failed"
          + (f"; {most:.0f} MB resident at most" if options.pid else ""))
    for says in missed + failures[:20]:
        print(f"MISSED {says}")
    return 1 if missed or failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(run(arguments())))
