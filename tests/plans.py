#!/usr/bin/env python3
"""How the database runs what pages ask: every statement that a walk over the pages causes, and those that read a whole table
that grows.

usage: plans.py BINARY DATABASE [PAGES]     e.g. plans.py target/release/plumbline plumbline-demo.db 300
Serves the SQLite file on this machine, follows links within it, takes the statements out of the program's own log, asks
SQLite for the plan of each, and ends with status 1 when one scans findings, documents, events, probes or spans."""
import collections
import http.client
import json
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

GROWS = {"event", "finding", "finding_span", "document", "doc_span", "reach_span", "fact_span", "probe_day", "surface_month",
         "probe_session", "eval", "deploy", "rule_day", "listing"}


def served(binary, database, port, log):
    settings = tempfile.NamedTemporaryFile("w", suffix=".toml", delete=False)
    settings.write('[log]\nfilter = "error,sqlx::query=debug"\nformat = "json"\n')
    settings.close()
    return subprocess.Popen([binary, "serve", "--database", database, "--listen", f"127.0.0.1:{port}", "--config", settings.name],
                            stderr=log, stdout=subprocess.DEVNULL)


def ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    started = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    return answer.status, body, (time.perf_counter() - started) * 1000


def walk(port, most):
    """Pages by the shape of their address, so that a thousand targets count as one shape with a few examples."""
    waiting, seen, shapes, slow = collections.deque(["/"]), {"/"}, collections.Counter(), []
    pages = 0
    while waiting and pages < most:
        path = waiting.popleft()
        shape = re.sub(r"[0-9a-f]{8,}|\d+", "N", path.split("?")[0]) + ("?" if "?" in path else "")
        shapes[shape] += 1
        if shapes[shape] > 6:
            continue
        status, body, took = ask(port, path)
        pages += 1
        slow.append((took, status, path))
        for link in re.findall(rb'href="(/[^"#]*)', body):
            link = link.decode(errors="replace").replace("&amp;", "&")
            if link not in seen and not link.startswith(("/assets", "/login")):
                seen.add(link)
                waiting.append(link)
    return pages, slow


def statements(log):
    found, took = set(), collections.defaultdict(list)
    for line in open(log, errors="replace"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        text = entry.get("db.statement") or entry.get("summary")
        if text and text.lstrip().upper().startswith(("SELECT", "WITH", "UPDATE", "DELETE", "INSERT")) and "_sqlx" not in text:
            text = text.strip()
            found.add(text)
            took[text].append(float(entry.get("elapsed_secs", 0)) * 1000)
    return found, took


def main():
    binary, database = sys.argv[1], sys.argv[2]
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tempfile.NamedTemporaryFile("w", suffix=".log", delete=False)
    program = served(binary, database, port, log)
    try:
        for _ in range(200):
            try:
                ask(port, "/healthz")
                break
            except OSError:
                time.sleep(0.1)
        pages, slow = walk(port, most)
    finally:
        program.terminate()
        program.wait()
    found, took = statements(log.name)
    base = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    scans = []
    for statement in sorted(found):
        numbers = {n: 1 for n in re.findall(r"\$(\d+)", statement)}
        try:
            plan = [row[3] for row in base.execute("EXPLAIN QUERY PLAN " + statement, numbers)]
        except sqlite3.Error as error:
            print("no plan:", error, statement[:100])
            continue
        for step in plan:
            table = re.match(r"SCAN (\S+)", step)
            names = {name for name in GROWS if re.search(rf"\b{name}\b(\s+AS)?\s+{table.group(1)}\b", statement)} if table else set()
            if table and (table.group(1) in GROWS or names):
                scans.append((step, statement))
    print(f"{pages} pages, {len(found)} different statements, {len(scans)} of them read a whole table that grows")
    for step, statement in scans:
        print(f"--- {step}\n{statement}")
    print("slowest statements (ms at best, at worst, times):")
    for statement in sorted(took, key=lambda text: min(took[text]), reverse=True)[:30]:
        best, worst, times = min(took[statement]), max(took[statement]), len(took[statement])
        print(f"{best:8.2f} {worst:8.1f} {times:5}  {' '.join(statement.split())[:150]}")
    print("slowest pages (ms):")
    for ms, status, path in sorted(slow, reverse=True)[:12]:
        print(f"{ms:8.1f}  {status}  {path}")
    sys.exit(1 if scans else 0)


if __name__ == "__main__":
    main()
