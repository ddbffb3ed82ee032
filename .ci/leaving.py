"""Reads what leaves a running Plumbline with the tools that people read it with: leaving.py BASE PROMETHEUS SNAPSHOT"""
import json
import pathlib
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import duckdb
import feedparser

base, prometheus, snapshot = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])


def got(address, accept="application/json"):
    with urllib.request.urlopen(urllib.request.Request(address, headers={"Accept": accept})) as answer:
        return answer.read()


def read(address):
    return json.loads(got(address))


def must(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"holds: {what}")


def tables():
    """The exports hold the rows and sums that the pages show, and every form holds the same."""
    folder = pathlib.Path(tempfile.mkdtemp())
    for table in ("targets", "findings", "rules", "prevalence", "days"):
        for form in ("csv", "jsonl", "parquet"):
            (folder / f"{table}.{form}").write_bytes(got(f"{base}/api/v1/exports/{table}/{form}"))
    ask = lambda query: duckdb.sql(query.replace("FOLDER", str(folder))).fetchall()
    page = read(f"{base}/targets")
    by_headline = {}
    for count in page["counts"]:
        by_headline[count["headline"]] = by_headline.get(count["headline"], 0) + count["targets"]
    prevalence = {rule["rule"]: (rule["evaluated"], rule["failing"]) for rule in read(f"{base}/prevalence")["rules"]}
    home = read(f"{base}/")["present"]
    for form, reader in (("csv", "read_csv_auto('FOLDER/{}.csv')"), ("parquet", "read_parquet('FOLDER/{}.parquet')"), ("jsonl", "read_json_auto('FOLDER/{}.jsonl')")):
        of = lambda table: reader.format(table)
        must(dict(ask(f"select headline, count(*) from {of('targets')} group by 1")) == by_headline, f"{form}: targets by verdict are those of the page")
        last = ask(f"select rule, evaluated, failing from {of('prevalence')} where day = (select max(day) from {of('prevalence')})")
        shown = {rule: (evaluated, failing) for rule, evaluated, failing in last if rule in prevalence}
        must(len(shown) > 20 and shown == prevalence, f"{form}: rules on the last day are those of the page")
        day = ask(f"select targets, sound, blocked from {of('days')} order by day desc limit 1")[0]
        must(day == (home["targets"], home["sound"], home["blocked"]), f"{form}: the last day is the one of the overview")
        rules = dict(ask(f"select rule, failing from {of('rules')} where failing is not null"))
        must(all(rules[rule] == failing for rule, (_, failing) in prevalence.items()), f"{form}: rules fail as often as on the page")
    for table in ("targets", "findings", "prevalence", "days"):
        counts = {form: ask(f"select count(*) from {reader}('FOLDER/{table}.{form}')")[0][0] for form, reader in (("csv", "read_csv_auto"), ("jsonl", "read_json_auto"), ("parquet", "read_parquet"))}
        must(len(set(counts.values())) == 1 and counts["csv"] > 0, f"{table}: {counts}")
    columns = dict((name, kind) for name, kind, *_ in ask("describe select * from 'FOLDER/findings.parquet'"))
    must(columns["id"] == "BIGINT" and columns["is_security"] == "BOOLEAN" and columns["rule"] == "VARCHAR", f"columns have their types ({columns['id']}, {columns['rule']})")


def snapshots():
    schema = json.loads((snapshot / "schema.json").read_text())
    for table in schema["tables"]:
        for file in table["files"]:
            reader = {"csv": "read_csv_auto", "jsonl": "read_json_auto", "parquet": "read_parquet"}[file["name"].rsplit(".", 1)[1]]
            rows = duckdb.sql(f"select count(*) from {reader}('{snapshot / file['name']}')").fetchall()[0][0] if file["bytes"] else 0
            must(rows == table["rows"], f"{file['name']} holds its {rows} rows")
            must(got(f"{base}/snapshots/{schema['month']}/{file['name']}") == (snapshot / file["name"]).read_bytes(), f"{file['name']} is handed out as it is")
        described = {column["name"] for column in table["columns"]}
        names = {row[0] for row in duckdb.sql(f"describe select * from '{snapshot / table['name']}.parquet'").fetchall()}
        must(names == described and all(column["says"] for column in table["columns"]), f"{table['name']}: every column is described")


def feeds():
    owner = read(f"{base}/api/v1/completions?q=owner:")["items"][0]["query"].split(":", 1)[1].strip('"')
    for feed in ("regressions", "incidents", "releases", "targets/1", "cohorts/all", f"owners/{urllib.parse.quote(owner)}"):
        parsed = feedparser.parse(got(f"{base}/feeds/{feed}.atom", "application/atom+xml"))
        must(not parsed.bozo and parsed.version == "atom10" and parsed.feed.get("id") and parsed.feed.get("updated"), f"feed {feed} with {len(parsed.entries)} entries")
        must(all(entry.get("id") and entry.get("updated") and entry.get("link") for entry in parsed.entries), f"feed {feed}: entries are whole")


def numbers():
    def query(expression):
        return read(f"{prometheus}/api/v1/query?query={urllib.parse.quote(expression)}")["data"]["result"]

    for _ in range(120):
        try:
            if query("up") and query("plumbline_targets"):
                break
        except OSError:
            pass
        time.sleep(0.5)
    target = read(f"{prometheus}/api/v1/targets")["data"]["activeTargets"][0]
    must(target["health"] == "up" and not target["lastError"], f"Prometheus scrapes it ({target['lastError'] or 'no error'})")
    total = int(query("sum(plumbline_targets)")[0]["value"][1])
    must(total == read(f"{base}/")["present"]["targets"], f"Prometheus counts {total} targets, as the overview does")
    samples = int(float(query("scrape_samples_scraped")[0]["value"][1]))
    own = query('count({job="plumbline",__name__=~"plumbline_.+"})')
    must(samples > 50 and int(own[0]["value"][1]) > 50, f"{samples} samples are read")
    described = read(f"{prometheus}/api/v1/metadata")["data"]
    must(all(one["help"] for name, all_ in described.items() if name.startswith("plumbline_") for one in all_), f"{len(described)} families are described")


tables()
snapshots()
feeds()
numbers()
