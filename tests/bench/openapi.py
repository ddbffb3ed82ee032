#!/usr/bin/env python3
"""Plumbline beside Spectral (and vacuum where it is there) on the same OpenAPI files, in one run.

usage: tests/bench/openapi.py [--bin PLUMBLINE] [--spectral SPECTRAL] [--vacuum VACUUM] [--cards FOLDER] FILE...

Spectral is the npm package @stoplight/spectral-cli, with its own ruleset spectral:oas. Starting up is taken out on both
sides: what is told is the time for many copies of the files less the time for one of each, by document. Plumbline runs on
one core (taskset) for the OpenAPI files, and on all for the cards. The fastest of three runs counts.
"""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time


def fastest(command, runs=3, **more):
    times = []
    for _ in range(runs):
        began = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **more)
        times.append(time.monotonic() - began)
    return min(times)


def lines(path, kind, texts, copies):
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(copies):
            for text in texts:
                out.write(json.dumps({"kind": kind, "document": json.loads(text)}, ensure_ascii=False) + "\n")
    return os.path.getsize(path)


def plumbline(binary, work, kind, texts, copies, prefix):
    few, many = os.path.join(work, "few"), os.path.join(work, "many")
    small = lines(few, kind, texts, 1)
    large = lines(many, kind, texts, copies)
    check = prefix + [binary, "check", "--lines"]
    seconds = fastest(check + [many]) - fastest(check + [few])
    documents = len(texts) * (copies - 1)
    return documents / seconds, (large - small) / seconds / 1e6


def linter(command, work, texts, copies):
    folder = os.path.join(work, "files")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for n in range(copies):
        for m, text in enumerate(texts):
            with open(os.path.join(folder, f"{n:03}-{m}.json"), "w", encoding="utf-8") as out:
                out.write(text)
    first = [os.path.join(folder, f"000-{m}.json") for m in range(len(texts))]
    every = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    start, all_of_them = fastest(command + first, cwd=work), fastest(command + every, runs=1, cwd=work)
    return len(texts) * (copies - 1) / (all_of_them - start), start


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--bin", default="target/release/plumbline")
    asked.add_argument("--spectral", default=shutil.which("spectral"))
    asked.add_argument("--vacuum", default=shutil.which("vacuum"))
    asked.add_argument("--cards")
    asked.add_argument("files", nargs="+")
    a = asked.parse_args()
    texts = [open(path, encoding="utf-8").read() for path in a.files]
    size = sum(map(len, texts)) / len(texts)
    print(f"{len(texts)} OpenAPI files of {size / 1000:.1f} KB on average, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as work:
        one_core = ["taskset", "-c", "0"] if shutil.which("taskset") else []
        documents, megabytes = plumbline(a.bin, work, "openapi", texts, 400, one_core)
        print(f"plumbline: {documents:,.0f} documents a second, {megabytes:.1f} MB a second, on one core")
        with open(os.path.join(work, ".spectral.yaml"), "w", encoding="utf-8") as out:
            out.write('extends: ["spectral:oas"]\n')
        for name, command in (("spectral", [a.spectral, "lint", "--quiet", "--fail-severity", "error"]),
                              ("vacuum", [a.vacuum, "lint", "--silent"])):
            if not command[0]:
                print(f"{name}: not there")
                continue
            rate, start = linter(command, work, texts, 12)
            print(f"{name}: {rate:,.1f} documents a second once it runs, {start:.1f} s for the first {len(texts)};"
                  f" plumbline judges {documents / rate:,.0f} times as many")
        if a.cards:
            names = sorted(name for name in os.listdir(a.cards) if name.endswith(".json"))
            cards = []
            for name in names:
                try:
                    cards.append(json.dumps(json.load(open(os.path.join(a.cards, name), encoding="utf-8"))))
                except ValueError:
                    pass
            documents, megabytes = plumbline(a.bin, work, "a2a-card", cards, 100, [])
            print(f"plumbline: {documents:,.0f} cards a second, {megabytes:.1f} MB a second, on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
