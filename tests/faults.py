#!/usr/bin/env python3
"""Every fault a crawl has to survive, made on purpose, and what was lost, doubled or wrongly said afterwards: nothing.

usage: faults.py BINARY SHARED [--kills N] [--soak MINUTES] [--seed S] [--only NAME,...] [--rows FILE]

Runs on loopback alone: a small world of agents behind a name server of its own, and the stand-in registry of SHARED. Works in
folders of its own, ends what it started, prints a table and ends with status 1 where anything is not as it should be. The disk
run needs the right to mount a small file system, the clock run needs libfaketime; without them they are left out and say so."""
import argparse
import glob
import http.server
import json
import os
import random
import shutil
import signal
import socket
import socketserver
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CARD = open(os.path.join(HERE, "..", "rules", "examples", "a2a-1.0.json"), encoding="utf-8").read()
AGENTS = 60
NAMES = 1500
SETTINGS = """database = "plumbline.db"
[log]
format = "json"
[web]
listen = "127.0.0.1:0"
[net]
allow_networks = ["127.0.0.0/8"]
name_servers = ["127.0.0.1:{dns}"]
[net.manners]
pace_ms = 0
[net.time]
dns_ms = 1000
connect_ms = 1500
head_ms = 2000
idle_ms = 2000
total_ms = 4000
[probe]
endpoints = false
[crawl]
card_interval_s = 4
registry_interval_s = 5
registry_full_interval_s = 10
backoff_ceiling_s = 8
lease_s = 20
drain_s = 3
canaries = ["http://canary1.net:{world}/", "http://canary2.net:{world}/", "http://canary3.net:{world}/"]
[[registries]]
name = "test"
base = "{registry}"
pace_ms = 0
[[domains]]
list = {cards}
"""


# The world: agents that answer by the name they are called by, and the name server that leads to them.

class Agent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        name = (self.headers.get("Host") or "").split(":")[0]
        number = int("".join(filter(str.isdigit, name)) or 0)
        if self.path != "/.well-known/agent-card.json":
            return self.answer(404, b"")
        if number % 20 == 7:
            return self.answer(503, b"")
        card = CARD.replace("example.com", name)
        if number % 10 == 3:
            card = card.replace('"protocolBinding": "JSONRPC", ', "")
        self.answer(200, card.encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Paths(Agent):
    """Any number of cards under paths of any host, and how often each host was asked; hosts called hang do."""

    asked = {}

    def do_GET(self):
        name = (self.headers.get("Host") or "").split(":")[0]
        if self.path == "/count":
            body = json.dumps(Paths.asked).encode()
            Paths.asked = {}
            return self.answer(200, body)
        if name.startswith("hang"):
            time.sleep(60)
        Paths.asked[name] = Paths.asked.get(name, 0) + 1
        self.answer(200, CARD.replace("example.com", name).encode())


class Names(socketserver.BaseRequestHandler):
    """Every name is on this machine; while the file `lie` is there, none exists."""

    def handle(self):
        query, channel = self.request
        question = query[12:]
        end = question.index(b"\0") + 5
        kind = struct.unpack(">H", question[end - 4:end - 2])[0]
        lies = os.path.exists(self.server.lie)
        answers = 1 if kind == 1 and not lies else 0
        head = query[:2] + struct.pack(">HHHHH", 0x8183 if lies else 0x8180, 1, answers, 0, 0)
        record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + bytes([127, 0, 0, 1])
        channel.sendto(head + question[:end] + (record if answers else b""), self.client_address)


def world(what, lie):
    if what in ("agents", "paths"):
        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads, request_queue_size = True, 256
        server = Server(("127.0.0.1", 0), Agent if what == "agents" else Paths)
    else:
        class Server(socketserver.ThreadingMixIn, socketserver.UDPServer):
            daemon_threads = True
        server = Server(("127.0.0.1", 0), Names)
        server.lie = lie
    print(server.server_address[1], flush=True)
    server.serve_forever()


class Part:
    """A process of the world; it can be frozen, as a network that is cut."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.said = self.process.stdout.readline().split()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.thaw()
        self.process.kill()
        self.process.wait()


class Place:
    """A world, a folder with settings, and Plumbline in it."""

    def __init__(self, options, folder=None):
        self.binary = os.path.abspath(options.binary)
        self.folder = folder or tempfile.mkdtemp(prefix="plumbline-faults-")
        self.lie = os.path.join(tempfile.gettempdir(), f"plumbline-lie-{os.getpid()}-{random.random()}")
        me = [sys.executable, os.path.abspath(__file__), "--world"]
        self.agents, self.names = Part(*me, "agents", self.lie), Part(*me, "names", self.lie)
        script = os.path.join(options.shared, "fleet", "fake_registry.py")
        self.registry = Part(sys.executable, script, "--port", "0", "--synthetic", str(NAMES))
        port = self.agents.said[0]
        cards = json.dumps([f"http://tide{n:04}.net:{port}/" for n in range(AGENTS)])
        with open(os.path.join(self.folder, "plumbline.toml"), "w") as file:
            file.write(SETTINGS.format(dns=self.names.said[0], world=port, registry="http://" + self.registry.said[1], cards=cards))
        self.process, self.log = None, os.path.join(self.folder, "log")
        self.extra = {}

    def command(self, *arguments, **more):
        environment = dict(os.environ, **self.extra)
        return subprocess.run([self.binary, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, **more)

    def start(self):
        self.process = subprocess.Popen([self.binary, "serve"], cwd=self.folder, env=dict(os.environ, **self.extra),
                                        stdout=subprocess.DEVNULL, stderr=open(self.log, "ab"))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def end(self):
        """A decent end; True where it came in time and with status 0."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=20) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            return False
        finally:
            self.process = None

    def ask(self, sql, *values):
        path = os.path.join(self.folder, "plumbline.db")
        if not os.path.exists(path):
            return [(0,)]
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)
        try:
            return database.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return [(0,)]
            raise
        finally:
            database.close()

    def number(self, sql, *values):
        return self.ask(sql, *values)[0][0]

    def events(self, word):
        return self.number("SELECT COUNT(*) FROM event JOIN event_kind ON event_kind.id = event.kind WHERE word = ?", word)

    def until(self, what, condition, patience=60):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if condition():
                return
            if self.process and self.process.poll() is not None:
                raise AssertionError(f"{what}: the process ended with {self.process.returncode}: {self.tail()}")
            time.sleep(0.2)
        raise AssertionError(f"{what}: not within {patience} s: {self.tail()}")

    def tail(self):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-4:])

    def settle(self):
        """Until everything was looked at and every entry is there."""
        looked = "SELECT COUNT(*) FROM surface WHERE last_attempt_s IS NOT NULL AND retired_s IS NULL"
        self.until("every entry is there", lambda: self.number("SELECT COUNT(*) FROM listing") >= NAMES, 120)
        self.until("everything is looked at", lambda: self.number(looked) >= AGENTS + self.live_names(), 120)

    def live_names(self):
        return self.number("SELECT COUNT(DISTINCT target_id) FROM listing WHERE status <> 'deleted'")

    def answering(self):
        return self.number("SELECT COUNT(*) FROM surface WHERE kind = 'a2a-card' AND reach IN ('up', 'gated')")

    def close(self):
        for part in (self.agents, self.names, self.registry):
            part.stop()
        if self.process:
            self.kill()
        if os.path.exists(self.lie):
            os.unlink(self.lie)
        shutil.rmtree(self.folder, ignore_errors=True)


# Agents 7, 27 and 47 answer 503, and are rightly called down after a while.
SOUND = "kind = 'a2a-card' AND url NOT LIKE '%07.net%' AND url NOT LIKE '%27.net%' AND url NOT LIKE '%47.net%'"


def wrong(place):
    """What no run may leave behind, as sentences."""
    found = []

    def none(what, sql, *values):
        n = place.number(sql, *values)
        if n:
            found.append(f"{n} {what}")

    def same(what, a, b):
        if a != b:
            found.append(f"{what}: {a} and not {b}")

    same("integrity", place.number("PRAGMA integrity_check"), "ok")
    for table, key in [("finding_span", "finding_id"), ("doc_span", "surface_id"), ("reach_span", "surface_id")]:
        none(f"{table} that overlap", f"""SELECT COUNT(*) FROM {table} a JOIN {table} b ON a.{key} = b.{key}
            AND a.from_s < b.from_s AND (a.to_s IS NULL OR a.to_s > b.from_s)""")
        none(f"{table} that end before they begin", f"SELECT COUNT(*) FROM {table} WHERE to_s < from_s")
    none("fact_span that overlap", """SELECT COUNT(*) FROM fact_span a JOIN fact_span b ON a.surface_id = b.surface_id
        AND a.rule_id = b.rule_id AND a.from_s < b.from_s AND (a.to_s IS NULL OR a.to_s > b.from_s)""")
    same("entries", place.number("SELECT COUNT(*) FROM listing"), NAMES)
    none("entries gone", "SELECT COUNT(*) FROM listing WHERE gone_s IS NOT NULL")
    same("agents", place.number("SELECT COUNT(*) FROM target WHERE kind = 'a2a-agent' AND retired_s IS NULL"), AGENTS)
    same("names", place.number("SELECT COUNT(*) FROM target WHERE kind = 'mcp-server' AND retired_s IS NULL"), place.live_names())
    none("targets retired that were there", """SELECT COUNT(*) FROM target WHERE retired_s IS NOT NULL AND key NOT IN
        (SELECT name FROM listing WHERE status = 'deleted')""")
    none("surfaces called down or absent that answer", f"SELECT COUNT(*) FROM surface WHERE retired_s IS NULL AND reach IN ('down', 'absent') AND {SOUND}")
    none("findings resolved", "SELECT COUNT(*) FROM finding WHERE state = 'resolved' AND opens > 0")
    none("findings whose openings and spans differ", """SELECT COUNT(*) FROM finding WHERE opens <>
        (SELECT COUNT(*) FROM finding_span WHERE finding_id = finding.id)""")
    none("openings told twice or not at all", """SELECT COUNT(*) FROM finding WHERE opens <>
        (SELECT COUNT(*) FROM event WHERE kind IN (1, 2) AND subject_id = finding.id)""")
    none("regressions", "SELECT COUNT(*) FROM event WHERE kind = 2")
    none("targets added twice", """SELECT COUNT(*) FROM (SELECT target_id FROM event WHERE kind = 10
        GROUP BY target_id HAVING COUNT(*) > 1)""")
    none("targets whose addition was not told", """SELECT COUNT(*) FROM target WHERE id NOT IN
        (SELECT target_id FROM event WHERE kind = 10)""")
    judged = place.command("doctor", "--json")
    if judged.returncode not in (0,):
        found.append(f"doctor says: {judged.stdout[-600:]}{judged.stderr[-300:]}")
    return found


# The runs. Each gives what was done and what was seen; an AssertionError or what `wrong` finds makes it fail.

def run_kills(place, options):
    chance = random.Random(options.seed)
    for _ in range(options.kills):
        place.start()
        # Sometimes before it has opened its database, sometimes in the middle of everything.
        time.sleep(chance.choice([0.05, 0.2, 0.5, 1, 2]) * chance.uniform(0.5, 1.5))
        place.kill()
    place.start()
    place.settle()
    time.sleep(3)
    assert place.end(), f"it did not end decently: {place.tail()}"
    crawls = place.number("SELECT COUNT(*) FROM crawl")
    return f"{options.kills} kill -9 at random moments", f"{crawls} passes, {place.number('SELECT COUNT(*) FROM event')} events, nothing lost or doubled"


def run_network(place, options):
    place.start()
    place.settle()
    answering = place.answering()
    for part in (place.agents, place.names, place.registry):
        part.freeze()
    time.sleep(options.cut)
    during = place.number("SELECT COALESCE(SUM(faults), 0) FROM crawl")
    moved = place.number("SELECT COUNT(*) FROM surface WHERE reach IN ('suspect', 'down', 'absent') AND " + SOUND)
    for part in (place.agents, place.names, place.registry):
        part.thaw()
    place.until("everybody answers again", lambda: place.answering() >= answering, 90)
    assert place.end(), f"it did not end decently: {place.tail()}"
    assert during > 0, "the cut was not noticed"
    assert moved <= 4, f"{moved} surfaces were suspected"
    degraded = place.events("crawl.degraded")
    assert degraded > 0, "no crawl says that it was our own fault"
    return f"network cut for {options.cut} s in the middle of passes", f"{during} looks are our fault, {degraded} passes say so, none down, none resolved"


def run_resolver(place, options):
    place.start()
    place.settle()
    answering = place.answering()
    place.names.freeze()
    time.sleep(options.cut)
    place.names.thaw()
    place.until("everybody answers again", lambda: place.answering() >= answering, 90)
    open(place.lie, "w").close()
    time.sleep(options.cut)
    absent = place.number("SELECT COUNT(*) FROM surface WHERE reach = 'absent'")
    os.unlink(place.lie)
    place.until("everybody answers again", lambda: place.answering() >= answering, 90)
    assert place.end(), f"it did not end decently: {place.tail()}"
    assert absent == 0, f"{absent} agents were called absent on the word of a lying resolver"
    return f"name server silent for {options.cut} s, then denying every name for {options.cut} s", "nobody down, nobody absent"


def run_clock(place, options):
    library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
    if not library:
        return None
    stamp = os.path.join(place.folder, "clock")

    def shift(text):
        with open(stamp + ".new", "w") as file:
            file.write(text + "\n")
        os.replace(stamp + ".new", stamp)

    shift("+0")
    place.extra = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": stamp, "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1"}
    place.start()
    place.settle()
    for text in ("+1d", "+0", "-1d", "+0", "-1h"):
        shift(text)
        before = place.number("SELECT COALESCE(SUM(done), 0) FROM crawl")
        # Within the time in which the clock is looked at, everything is looked at again.
        place.until(f"looks go on after the clock was set to {text}", lambda: place.number("SELECT SUM(done) FROM crawl") > before + AGENTS, 60)
    place.kill()
    # Behind what the database has seen: a start notices.
    shift("-3d")
    place.start()
    before = place.number("SELECT SUM(done) FROM crawl")
    place.until("looks go on after a start in the past", lambda: place.number("SELECT SUM(done) FROM crawl") > before + AGENTS, 60)
    assert place.end(), f"it did not end decently: {place.tail()}"
    place.extra = {}
    return "clock set a day ahead, back, a day behind, back, an hour behind; start three days behind", "looks go on each time, nothing fires twice"


def run_disk(place, options):
    folder = os.path.join(place.folder, "small")
    os.mkdir(folder)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", folder], capture_output=True).returncode:
        return None
    try:
        path = os.path.join(place.folder, "plumbline.toml")
        text = open(path).read()
        with open(path, "w") as file:
            file.write(text.replace('database = "plumbline.db"', 'database = "small/plumbline.db"'))
        os.symlink("small/plumbline.db", os.path.join(place.folder, "plumbline.db"))
        place.start()
        place.until("it has begun", lambda: place.number("SELECT COUNT(*) FROM listing") > 0)
        ballast = os.path.join(folder, "ballast")
        subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=4096"], capture_output=True)
        time.sleep(12)
        assert place.process.poll() is None, f"it ended: {place.tail()}"
        os.unlink(ballast)
        subprocess.run(["mount", "-o", "remount,size=200m", folder], check=True)
        place.settle()
        time.sleep(2)
        assert place.end(), f"it did not end decently: {place.tail()}"
        said = "full" in open(place.log, errors="replace").read()
        assert said, "the log does not say that the disk is full"
        found = wrong(place)
        assert not found, "; ".join(found)
        return "disk full for 12 s in the first walk", "it waited, said so, went on; nothing lost"
    finally:
        if place.process:
            place.kill()
        subprocess.run(["umount", folder], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def run_locked(place, options):
    place.start()
    place.until("it has begun", lambda: place.number("SELECT COUNT(*) FROM listing") > 0)
    holder = sqlite3.connect(os.path.join(place.folder, "plumbline.db"), isolation_level=None, timeout=20)
    holder.execute("BEGIN IMMEDIATE")
    time.sleep(12)
    holder.execute("ROLLBACK")
    holder.close()
    place.settle()
    assert place.process.poll() is None, f"it ended: {place.tail()}"
    assert place.end(), f"it did not end decently: {place.tail()}"
    return "database locked by another program for 12 s", "it waited with what it had seen and went on"


def run_second(place, options):
    place.start()
    place.until("it has begun", lambda: place.number("SELECT COUNT(*) FROM crawl") > 0)
    for command in ("serve", "crawl"):
        second = place.command(command, timeout=30)
        assert second.returncode == 2 and "another Plumbline" in second.stderr, f"{command}: {second.returncode} {second.stderr}"
    place.kill()
    place.start()
    place.settle()
    assert place.end(), f"it did not end decently: {place.tail()}"
    return "a second serve and a second crawl on the same file", "both refuse and name the first; after kill -9 the next start works"


def run_soak(place, options):
    chance = random.Random(options.seed)
    end = time.monotonic() + options.soak * 60
    place.start()
    place.settle()
    samples, done = [], []
    while time.monotonic() < end:
        fault = chance.choice(["none", "none", "network", "names", "lie", "kill", "lock", "registry", "restart"])
        done.append(fault)
        if fault == "network":
            for part in (place.agents, place.names, place.registry):
                part.freeze()
            time.sleep(chance.uniform(3, 15))
            for part in (place.agents, place.names, place.registry):
                part.thaw()
        elif fault in ("names", "registry"):
            part = place.names if fault == "names" else place.registry
            part.freeze()
            time.sleep(chance.uniform(3, 10))
            part.thaw()
        elif fault == "lie":
            open(place.lie, "w").close()
            time.sleep(chance.uniform(3, 10))
            os.unlink(place.lie)
        elif fault == "kill":
            place.kill()
            place.start()
        elif fault == "lock":
            holder = sqlite3.connect(os.path.join(place.folder, "plumbline.db"), isolation_level=None, timeout=20)
            holder.execute("BEGIN IMMEDIATE")
            time.sleep(chance.uniform(1, 9))
            holder.execute("ROLLBACK")
            holder.close()
        elif fault == "restart":
            assert place.end(), f"it did not end decently: {place.tail()}"
            place.start()
        time.sleep(chance.uniform(4, 12))
        assert place.process.poll() is None, f"it ended after {fault}: {place.tail()}"
        samples.append(sample(place.process.pid))
        if len(samples) % 10 == 1:
            print(f"  {len(samples):4} faults, {samples[-1][0] / 1024:.0f} MB, {samples[-1][1]} files, {os.path.getsize(os.path.join(place.folder, 'plumbline.db')) / 1e6:.1f} MB database", flush=True)
    place.settle()
    place.until("everybody answers", lambda: place.answering() >= AGENTS - AGENTS // 20, 120)
    assert place.end(), f"it did not end decently: {place.tail()}"
    errors = {}
    for line in open(place.log, errors="replace"):
        try:
            entry = json.loads(line)
        except ValueError:
            errors[line[:120]] = errors.get(line[:120], 0) + 1
            continue
        if entry.get("level") == "ERROR":
            what = str(entry.get("message", ""))[:120]
            errors[what] = errors.get(what, 0) + 1
    for what, n in sorted(errors.items()):
        print(f"  error in the log, {n} times: {what}")
    half = len(samples) // 2
    first, last = max(samples[:half] or [(0, 0)]), max(samples[half:] or [(0, 0)])
    faults = ", ".join(f"{done.count(kind)} {kind}" for kind in sorted(set(done)))
    return f"{options.soak} minutes of random faults ({faults})", (
        f"memory at most {first[0] // 1024} MB in the first half, {last[0] // 1024} MB in the second; "
        f"open files {max(s[1] for s in samples[:half] or [(0, 0)])} and {max(s[1] for s in samples[half:] or [(0, 0)])}; "
        f"{sum(errors.values())} errors in the log")


def sample(pid):
    """Resident memory in KiB and open files."""
    status = open(f"/proc/{pid}/status").read()
    resident = int(status.split("VmRSS:")[1].split()[0]) if "VmRSS:" in status else 0
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


RUNS = {"kills": run_kills, "network": run_network, "resolver": run_resolver, "clock": run_clock, "disk": run_disk,
        "locked": run_locked, "second": run_second, "soak": run_soak}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("shared")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--cut", type=int, default=25, help="seconds that the network is cut")
    parser.add_argument("--soak", type=float, default=0, help="minutes of random faults; 0 leaves it out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="names of runs: " + ", ".join(RUNS))
    parser.add_argument("--beside", type=int, default=1, help="runs at the same time")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name] or [name for name in RUNS if name != "soak" or options.soak]
    rows, lock = {}, threading.Semaphore(options.beside)

    def one(name):
        with lock:
            place = Place(options)
            began = time.monotonic()
            try:
                told = RUNS[name](place, options)
                found = wrong(place) if told and name != "disk" else []
                rows[name] = ("left out", "not possible on this machine", []) if told is None else (*told, found)
            except Exception as error:  # a run that cannot be made is a run that failed
                rows[name] = ("failed", str(error), [str(error)])
            finally:
                # What a failed run wrote is kept, to be read.
                if rows.get(name, (0, 0, 1))[2] and os.path.exists(place.log):
                    shutil.copy(place.log, f"faults-{name}.log")
                place.close()
            what, seen, found = rows[name]
            print(f"{'FAILED' if found else 'ok':6} {name:9} {time.monotonic() - began:5.0f} s  {what}: {seen}", flush=True)
            for line in found:
                print(f"         {line}", flush=True)

    threads = [threading.Thread(target=one, args=(name,)) for name in wanted]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    left_out = [name for name in wanted if rows.get(name, ("", "", [1]))[0] == "left out"]
    if left_out and os.environ.get("CI"):
        sys.exit(f"left out in CI: {', '.join(left_out)}")
    sys.exit(1 if any(found for _, _, found in rows.values()) or len(rows) < len(wanted) else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--world"]:
        world(*sys.argv[2:4])
    else:
        main()
