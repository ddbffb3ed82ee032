#!/usr/bin/env python3
"""Load on the pages: server time of list and detail pages of a running Plumbline, p50 and p95 in milliseconds.

usage: load.py BASE [ROUNDS]     e.g. load.py http://127.0.0.1:8080 40
Only for an instance on this machine. Asks one page after another, bounded in number, and stops by itself."""
import http.client
import re
import sys
import time
import urllib.parse


def main():
    base = urllib.parse.urlsplit(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    if base.hostname not in ("127.0.0.1", "localhost", "::1"):
        sys.exit("only for an instance on this machine")
    connection = http.client.HTTPConnection(base.hostname, base.port, timeout=30)

    def ask(path):
        started = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        return answer.status, body, (time.perf_counter() - started) * 1000

    listing = ask("/targets")[1].decode()
    target = re.search(r"/targets/\d+", listing).group(0)
    onward = re.search(r'href="(/targets\?[^"]*after[^"]*)"', listing)
    document = re.search(r"/documents/[0-9a-f]+", ask(target)[1].decode())
    paths = ["/", "/targets", "/targets?headline=sound", "/targets?q=io&order=changed", target, "/rules", "/rules/registry/schema-missing",
             "/crawls", "/healthz"]
    paths += [onward.group(1).replace("&amp;", "&")] if onward else []
    paths += [document.group(0)] if document else []
    worst = 0
    for path in paths:
        times = []
        for _ in range(rounds):
            status, body, took = ask(path)
            if status != 200:
                sys.exit(f"{path}: {status}")
            times.append(took)
        times.sort()
        p95 = times[int(len(times) * 0.95) - 1]
        worst = max(worst, p95)
        print(f"{path[:70]:70} {len(body):8} bytes  p50 {times[len(times) // 2]:7.1f} ms  p95 {p95:7.1f} ms")
    print(f"worst p95 {worst:.1f} ms")


if __name__ == "__main__":
    main()
