#!/usr/bin/env python3
"""Holds the store against a registry, reading both by itself: nothing of Plumbline is used but its database file.

usage: registry_truth.py replay BINARY SHARED      the sixteen recorded listings as full passes, one after another
       registry_truth.py churn BINARY SHARED       changes of every kind, then an incremental pass and full ones

Starts the stand-in registry of SHARED on loopback, works in a folder of its own, ends what it started. Prints a line a pass and
ends with status 1 at the first difference."""
import gzip
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

OFFICIAL = "io.modelcontextprotocol.registry/official"
SETTINGS = """[net]
allow_networks = ["127.0.0.0/8"]
[net.manners]
pace_ms = 0
[probe]
endpoints = false
[[registries]]
name = "test"
base = "%s"
pace_ms = 0
"""


class Registry:
    def __init__(self, shared, *options):
        script = os.path.join(shared, "fleet", "fake_registry.py")
        self.process = subprocess.Popen([sys.executable, script, "--port", "0", *options], stdout=subprocess.PIPE, text=True)
        self.base = "http://" + self.process.stdout.readline().split()[1]

    def post(self, path):
        with urllib.request.urlopen(urllib.request.Request(self.base + path, data=b"", method="POST")) as answer:
            return json.load(answer)

    def entries(self):
        """Every entry as the registry lists it now, withdrawn ones included."""
        found, cursor = {}, ""
        while True:
            query = "/v0.1/servers?limit=100&include_deleted=true" + (f"&cursor={urllib.request.quote(cursor, safe='')}" if cursor else "")
            with urllib.request.urlopen(self.base + query) as answer:
                page = json.load(answer)
            for item in page["servers"]:
                found[(item["server"]["name"], item["server"]["version"])] = item
            cursor = page["metadata"].get("nextCursor")
            if not cursor:
                return found

    def stop(self):
        self.process.kill()
        self.process.wait()


class Plumbline:
    def __init__(self, binary, base):
        self.binary, self.folder = os.path.abspath(binary), tempfile.mkdtemp(prefix="plumbline-truth-")
        with open(os.path.join(self.folder, "plumbline.toml"), "w") as file:
            file.write(SETTINGS % base)

    def crawl(self, *options):
        done = subprocess.run([self.binary, "crawl", "--format", "json", *options], cwd=self.folder, capture_output=True, text=True)
        if not done.stdout:
            sys.exit("no summary: " + done.stderr)
        return json.loads(done.stdout)

    def ask(self, sql):
        with sqlite3.connect(os.path.join(self.folder, "plumbline.db")) as database:
            return database.execute(sql).fetchall()

    def listings(self):
        rows = self.ask("SELECT name, version, status, is_latest, first_seen_s, gone_s FROM listing")
        return {(name, version): (status, latest, first, gone) for name, version, status, latest, first, gone in rows}


def differ(what, expected, seen):
    if expected == seen:
        return
    print(f"DIFFERENT: {what}")
    if isinstance(expected, dict):
        keys = [key for key in sorted(set(expected) | set(seen)) if expected.get(key) != seen.get(key)]
        for key in keys[:10]:
            print(f"  {key}: expected {expected.get(key)}, seen {seen.get(key)}")
    else:
        print(f"  expected {expected}, seen {seen}")
    sys.exit(1)


def recorded(path):
    """The entries of one recorded listing as the stand-in serves them: key to (status, is latest)."""
    found = {}
    for item in json.load(gzip.open(path, "rt", encoding="utf-8")):
        if "server" in item:
            server, official = item["server"], item.get("_meta", {}).get(OFFICIAL, {})
        else:
            server, official = item, dict(item.get("_meta", {}).get(OFFICIAL, {}), status=item.get("status", "active"))
        latest = official.get("isLatest", True)
        found[(server["name"], str(server.get("version", "")))] = (official.get("status", "active"), latest)
    return found


def replay(binary, shared):
    folder = os.path.join(shared, "corpus", "registry-history")
    days = sorted(name[:-len(".json.gz")] for name in os.listdir(folder) if name.endswith(".json.gz"))
    registry = Registry(shared, "--history", folder)
    try:
        plumbline = Plumbline(binary, registry.base)
        known, began = {}, []
        for number, day in enumerate(days):
            registry.post(f"/_control/snapshot?name={day}")
            listed = recorded(os.path.join(folder, day + ".json.gz"))
            time.sleep(1.05)  # first-seen moments are whole seconds, so passes must not share one
            began.append(int(time.time()))
            plumbline.crawl("--full")
            for key, (status, latest) in listed.items():
                first = known[key]["first"] if key in known else number
                known[key] = {"first": first, "status": status, "latest": latest, "missed": 0, "gone": False}
            # Whoever is not listed loses the flag to a listed version of its name.
            flagged = {key[0] for key, (_, latest) in listed.items() if latest}
            for key, one in known.items():
                if key not in listed and key[0] in flagged:
                    one["latest"] = False
            present = [key for key in known if not known[key]["gone"]]
            absent = [key for key in present if key not in listed]
            is_held = len(absent) == len(present) or (len(absent) >= 5 and len(absent) * 100 > len(present) * 20)
            for key in absent if not is_held else []:
                known[key]["missed"] += 1
                known[key]["gone"] = known[key]["missed"] >= 2
            seen = plumbline.listings()
            passes = lambda at: max(n for n, moment in enumerate(began) if moment <= at)
            differ(f"{day}: entries with status, latest flag, first pass, gone",
                   {key: (one["status"], int(one["latest"]), one["first"], one["gone"]) for key, one in known.items()},
                   {key: (status, latest, passes(first), gone is not None) for key, (status, latest, first, gone) in seen.items()})
            names = {key[0] for key, one in known.items() if not one["gone"] and one["status"] != "deleted"}
            differ(f"{day}: names watched", len(names), plumbline.ask("SELECT COUNT(*) FROM target WHERE retired_s IS NULL")[0][0])
            note, held = plumbline.ask("SELECT note, held_back FROM crawl WHERE kind = 'full-walk' ORDER BY id DESC LIMIT 1")[0]
            differ(f"{day}: listings held back", len(absent) if is_held else 0, held)
            differ(f"{day}: marked for a person", is_held, bool(note))
            overlaps = plumbline.ask("""SELECT COUNT(*) FROM finding_span a JOIN finding_span b ON a.finding_id = b.finding_id
                AND a.from_s < b.from_s AND (a.to_s IS NULL OR a.to_s > b.from_s)""")[0][0]
            differ(f"{day}: overlapping spans", 0, overlaps)
            open_findings = plumbline.ask("SELECT COUNT(*) FROM finding WHERE state IN ('open', 'clearing', 'flapping')")[0][0]
            print(f"{day}: {len(listed):5} listed, {len(seen):5} entries kept, {sum(one['gone'] for one in known.values()):3} gone, "
                  f"{len(names):5} names, {open_findings:5} open findings{', held back: ' + note[:60] + '…' if is_held else ''}")
        print(f"replay: {len(days)} passes, every entry, status, flag and first pass as the files say")
    finally:
        registry.stop()


def churn(binary, shared):
    registry = Registry(shared, "--synthetic", "1500", "--versions", "2")
    try:
        plumbline = Plumbline(binary, registry.base)
        plumbline.crawl("--full")
        compare("first full pass", registry, plumbline, set())
        vanished = set()
        for turn in range(3):
            time.sleep(1.05)
            done = registry.post("/_control/churn?update=50&delete=5&deprecate=4&add=3&edit=2&vanish=3")
            vanished |= {tuple(key) for key in done["vanish"]}
            summary = plumbline.crawl()
            differ(f"turn {turn}: the pass is incremental", False, summary["registries"][0]["full"])
            # What vanished is not in the feed: it still stands in the store until two full walks have missed it.
            compare(f"turn {turn}: incremental pass, {summary['registries'][0]['entries']} entries in {summary['seconds']} s",
                    registry, plumbline, vanished)
        for n in (1, 2):
            plumbline.crawl("--full")
            gone = {key for key, row in plumbline.listings().items() if row[3] is not None}
            differ(f"full pass {n}: gone", vanished if n == 2 else set(), gone)
        compare("second full pass", registry, plumbline, set())
        print("churn: the store equals the registry")
    finally:
        registry.stop()


def compare(what, registry, plumbline, beside):
    """Every entry of the registry with its status, flag and document; `beside`: what may stand in the store besides."""
    truth = registry.entries()
    expected = {key: (item["_meta"][OFFICIAL]["status"], int(item["_meta"][OFFICIAL]["isLatest"]), item["server"]["description"])
                for key, item in truth.items()}
    bodies = plumbline.ask("""SELECT listing.name, listing.version, listing.status, listing.is_latest, target.summary, listing.is_current
        FROM listing JOIN target ON target.id = listing.target_id WHERE listing.gone_s IS NULL""")
    seen = {}
    for name, version, status, latest, summary, current in bodies:
        key = (name, version)
        if key in beside and key not in truth:
            continue
        # The description on the target is that of the version that is judged.
        seen[key] = (status, latest, summary if current else expected.get(key, (0, 0, None))[2])
    differ(what, expected, seen)
    print(f"{what}: {len(seen)} entries equal")


if __name__ == "__main__":
    {"replay": replay, "churn": churn}[sys.argv[1]](sys.argv[2], sys.argv[3])
