#!/usr/bin/env python3
"""The numbers of a crawl that is left alone, measured in one run on this machine.

usage: crawl_numbers.py BINARY SHARED [walk] [large] [fair] [growth]     (all of them without names)

  walk    20,000 names: a first full walk, a second one with nothing changed, an incremental pass with 50 changes
  large   100,000 names in 300,000 entries, then the pages over them
  fair    2,000 endpoints on 200 hosts at a pace of 600 ms, and the same with a host that hangs
  growth  twelve hours of looks at 2,000 unchanged agents in simulated time (needs libfaketime)

On loopback alone, in folders of its own; ends what it started. Give it a release build."""
import glob
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import faults

SETTINGS = """[log]
filter = "warn"
[net]
allow_networks = ["127.0.0.0/8"]
name_servers = ["127.0.0.1:{dns}"]
[net.manners]
pace_ms = {pace}
[probe]
endpoints = false
[crawl]
canaries = ["http://canary1.net:{world}/"]
card_interval_s = {interval}
"""


class Home:
    """A folder with settings in which Plumbline runs."""

    def __init__(self, binary, text):
        self.binary, self.folder = os.path.abspath(binary), tempfile.mkdtemp(prefix="plumbline-numbers-")
        with open(os.path.join(self.folder, "plumbline.toml"), "w") as file:
            file.write(text)

    def crawl(self, *options, extra=None):
        """Seconds, memory of its own in MB, and the summary of one crawl."""
        began = time.monotonic()
        process = subprocess.Popen([self.binary, "crawl", "--format", "json", *options], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, **(extra or {})))
        peak = 0
        out = []
        reader = threading.Thread(target=lambda: out.append(process.stdout.read()))
        reader.start()
        while process.poll() is None:
            try:
                peak = max(peak, own_memory(process.pid))
            except (FileNotFoundError, ProcessLookupError, IndexError):
                pass
            time.sleep(0.05)
        reader.join()
        return time.monotonic() - began, peak / 1024, json.loads(out[0])

    def size(self):
        """Bytes of the database after a checkpoint."""
        path = os.path.join(self.folder, "plumbline.db")
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return os.path.getsize(path)

    def ask(self, sql):
        with sqlite3.connect(os.path.join(self.folder, "plumbline.db")) as database:
            return database.execute(sql).fetchone()


def own_memory(pid):
    """Resident memory in KiB less what is mapped of files: the database is, as far as the system has room for it."""
    status = open(f"/proc/{pid}/status").read()
    return int(status.split("RssAnon:")[1].split()[0])


def registry_settings(base):
    return SETTINGS.format(dns=9, world=9, pace=0, interval=3600) + f'[[registries]]\nname = "test"\nbase = "{base}"\npace_ms = 0\n'


# The stand-in registry writes head and body apart. On the loopback, whose packets are large, the second then waits 40 ms for
# the receipt of the first, which no real network does; without that it would be measured in place of the crawl.
START = "import runpy, socketserver, sys; socketserver.StreamRequestHandler.disable_nagle_algorithm = True; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def start_registry(shared, *options):
    return faults.Part(sys.executable, "-c", START, os.path.join(shared, "fleet", "fake_registry.py"), "--port", "0", *options)


def walk(binary, shared):
    registry = start_registry(shared, "--synthetic", "20000")
    home = Home(binary, registry_settings("http://" + registry.said[1]))
    first, memory, summary = home.crawl("--full")
    size = home.size()
    second, memory_again, again = home.crawl("--full")
    growth = home.size() - size
    urllib.request.urlopen(urllib.request.Request(f"http://{registry.said[1]}/_control/churn?update=50", data=b"")).read()
    passed, memory_pass, moved = home.crawl()
    registry.stop()
    print(f"walk: first full walk of 20,000 names {first:.1f} s, {memory:.0f} MB, database {size / 1e6:.1f} MB "
          f"({summary['headlines']['targets']} targets)")
    print(f"walk: second, nothing changed: {second:.1f} s = {second / first:.2f} of the first, {memory_again:.0f} MB, "
          f"database grew by {growth / 1e6:.2f} MB, {again['looked_at']} looks")
    entry = moved["registries"][0]
    print(f"walk: incremental pass with 50 changes: {passed:.2f} s, {entry['entries']} entries, full: {entry['full']}, {memory_pass:.0f} MB")


def large(binary, shared):
    registry = start_registry(shared, "--synthetic", "100000", "--versions", "3")
    home = Home(binary, registry_settings("http://" + registry.said[1]))
    took, memory, summary = home.crawl("--full")
    size = home.size()
    print(f"large: 100,000 names in {summary['registries'][0]['entries']} entries: complete {summary['registries'][0]['complete']}, "
          f"{took:.0f} s, {memory:.0f} MB, database {size / 1e6:.0f} MB")
    took, memory, _ = home.crawl("--full")
    print(f"large: second full walk {took:.0f} s, {memory:.0f} MB, grew by {(home.size() - size) / 1e6:.2f} MB")
    began = time.monotonic()
    serving = subprocess.Popen([home.binary, "serve", "--listen", "127.0.0.1:18181"], cwd=home.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                with urllib.request.urlopen("http://127.0.0.1:18181/", timeout=5) as answer:
                    answer.read()
                break
            except OSError:
                time.sleep(0.005)
        print(f"large: start to first page {(time.monotonic() - began) * 1000:.0f} ms")
        load = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")
        print(subprocess.run([sys.executable, load, "http://127.0.0.1:18181", "30"], capture_output=True, text=True).stdout.rstrip())
    finally:
        serving.terminate()
        serving.wait()
        registry.stop()


def fair(binary, shared):
    lie = os.path.join(tempfile.gettempdir(), "plumbline-no-lie")
    me = [sys.executable, os.path.abspath(faults.__file__), "--world"]
    agents, names = faults.Part(*me, "paths", lie), faults.Part(*me, "names", lie)
    port = agents.said[0]
    cards = [f"http://tide{host:04}.net:{port}/{n}/agent-card.json" for n in range(10) for host in range(200)]
    for hang in (False, True):
        listed = cards + ([f"http://hang{n}.net:{port}/{m}/agent-card.json" for n in range(3) for m in range(10)] if hang else [])
        text = SETTINGS.format(dns=names.said[0], world=port, pace=600, interval=3600)
        text = text.replace("[net.manners]", "robots = false\n[net.manners]") + f"[[domains]]\nlist = {json.dumps(listed)}\n"
        home = Home(binary, text)
        took, memory, summary = home.crawl()
        first, last, looks = home.ask("SELECT MIN(last_attempt_s), MAX(last_attempt_s), COUNT(*) FROM surface WHERE url LIKE 'http://tide%' AND last_attempt_s IS NOT NULL")
        asked = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/count"))
        ideal = (max(asked.values()) - 1) * 0.6
        print(f"fair: {looks} endpoints on 200 hosts{' and three hosts that hang' if hang else ''}: the last of them after {last - first} s "
              f"(whole seconds), ideal {ideal:.1f} s for {max(asked.values())} requests a host at 600 ms; the whole crawl {took:.1f} s, {memory:.0f} MB")
    agents.stop()
    names.stop()


def growth(binary, shared):
    library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
    if not library:
        print("growth: left out, libfaketime is not there")
        return
    lie = os.path.join(tempfile.gettempdir(), "plumbline-no-lie")
    me = [sys.executable, os.path.abspath(faults.__file__), "--world"]
    agents, names = faults.Part(*me, "paths", lie), faults.Part(*me, "names", lie)
    port = agents.said[0]
    count = 2000
    listed = [f"http://tide{n:04}.net:{port}/0/agent-card.json" for n in range(count)]
    text = SETTINGS.format(dns=names.said[0], world=port, pace=0, interval=3600).replace("[net.manners]", "robots = false\n[net.manners]")
    home = Home(binary, text + f"[[domains]]\nlist = {json.dumps(listed)}\n")
    home.crawl()
    before, size = home.ask("SELECT SUM(done) FROM crawl")[0], home.size()
    # One real second is four simulated minutes, so twelve hours take three minutes.
    extra = {"LD_PRELOAD": library, "FAKETIME": "+0 x240", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    serving = subprocess.Popen([home.binary, "serve", "--listen", "127.0.0.1:0"], cwd=home.folder, env=dict(os.environ, **extra),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(182)
    peak = faults.sample(serving.pid)
    serving.terminate()
    serving.wait()
    looks = home.ask("SELECT SUM(done) FROM crawl")[0] - before
    grew = home.size() - size
    packed = home.ask("SELECT SUM(LENGTH(probes)) FROM probe_day")[0]
    months = home.ask("SELECT SUM(LENGTH(days)) FROM surface_month")[0]
    print(f"growth: {looks} looks at {count} unchanged agents in twelve simulated hours ({looks / count:.1f} each): the database grew by "
          f"{grew / 1e6:.2f} MB = {grew / max(looks, 1):.1f} bytes a look, most of it the days of their first looks; "
          f"{packed / max(looks + before, 1):.1f} bytes a look are packed probes, months {months / count:.0f} bytes a surface; {peak[0] // 1024} MB, {peak[1]} files")
    for table in ("event", "doc_span", "reach_span", "document", "finding_span", "crawl"):
        print(f"growth: rows of {table}: {home.ask(f'SELECT COUNT(*) FROM {table}')[0]}")
    agents.stop()
    names.stop()


if __name__ == "__main__":
    for part in sys.argv[3:] or ["walk", "large", "fair", "growth"]:
        {"walk": walk, "large": large, "fair": fair, "growth": growth}[part](sys.argv[1], sys.argv[2])
