#!/usr/bin/env python3
"""Which released clients refuse which fault: serves each one-fault document on loopback, opens it with each pinned SDK, and
writes docs/clients.md and rules/src/clients.json.

usage: run.py [--check]        --check compares with what is kept, writes nothing, and ends with 1 where they differ
FLEET_HOME names a folder with the SDKs (py-a2a-0.3, py-a2a-1.3, py-mcp-1.30, js-a2a-1, js-everything); without it they
are installed into a temporary folder."""
import copy, http.server, json, os, pathlib, re, subprocess, sys, tempfile, threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BASES = ROOT / "rules/examples"

# Name of the SDK, how it opens things, its folder in the fleet, and how the folder is made from nothing.
CLIENTS = [
    ("a2a-sdk 0.3.26", "a2a.py", "py-a2a-0.3", ["a2a-sdk==0.3.26", "httpx"]),
    ("a2a-sdk 1.3.0", "a2a.py", "py-a2a-1.3", ["a2a-sdk==1.3.0", "httpx"]),
    ("@a2a-js/sdk 1.3.0", "a2a.mjs", "js-a2a-1", ["@a2a-js/sdk@1.3.0"]),
    ("mcp 1.30.0", "mcp.py", "py-mcp-1.30", ["mcp==1.30.0"]),
    ("@modelcontextprotocol/sdk 1.32.2", "mcp.mjs", "js-everything", ["@modelcontextprotocol/sdk@1.32.2"]),
]
LISTS = {
    "mcp-tools": ("tools/list", "tools", "tools"),
    "mcp-resources": ("resources/list", "resources", "resources"),
    "mcp-templates": ("resources/templates/list", "resource_templates", "resources"),
    "mcp-prompts": ("prompts/list", "prompts", "prompts"),
}


def faults():
    for line in (HERE / "faults.jsonl").read_text().splitlines():
        yield json.loads(line)


def base(name):
    document = json.loads((BASES / f"{name}.json").read_text())
    for member in ("resultType", "ttlMs", "cacheScope", "_meta"):  # of a younger revision than the one spoken here
        if name in LISTS:
            document.pop(member, None)
    return document


def places(document, pointer):
    *way, last = pointer.split("/")[1:]
    for segment in way:
        document = document[int(segment) if isinstance(document, list) else segment]
    return document, int(last) if isinstance(document, list) else last


def faulty(fault):
    document = copy.deepcopy(base(fault["over"]))
    for pointer in fault.get("remove", []):
        holder, key = places(document, pointer)
        del holder[key]
    for pointer, value in fault.get("set", {}).items():
        holder, key = places(document, pointer)
        holder[key] = value
    return document


def change(fault):
    """What was done to the sound document, in words."""
    if "raw" in fault:
        return f"the body is {fault['raw']}"
    said = [f"{pointer} is not there" for pointer in fault.get("remove", [])]
    said += [f"{pointer} is {json.dumps(value, ensure_ascii=False)}" for pointer, value in fault.get("set", {}).items()]
    return ", ".join(said) or "as its release asks for it"


class Case:
    """One document, served under its own path."""

    def __init__(self, name, over, document, raw=None):
        self.name, self.over, self.document, self.raw = name, over, document, raw
        self.protocol = over.split("-")[0]
        stem = next((stem for stem in LISTS if over.startswith(stem)), None)
        self.method, self.wanted, self.capability = LISTS.get(stem, (None, "", "tools"))

    def answer(self, request):
        """What the MCP server of this case says to a request."""
        method = request.get("method")
        envelope = {"jsonrpc": "2.0", "id": request["id"], "result": {}}
        if method == "initialize":
            result = base("mcp-initialize-2025-11-25")
            result["capabilities"] = {self.capability: {}}
            envelope["result"] = self.document if self.over.startswith("mcp-initialize") else result
            if self.over.startswith("mcp-jsonrpc"):
                envelope.update({k: v for k, v in self.document.items() if k not in ("id", "result")})
                if self.document["result"] != {}:
                    envelope["result"] = self.document["result"]
        elif method == self.method:
            envelope["result"] = self.document
        return envelope


def serve(cases):
    by_name = {case.name: case for case in cases}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def say(self, status, body=b"", kind="application/json"):
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def case(self):
            return by_name.get(self.path.split("/")[1])

        def do_GET(self):
            case = self.case()
            if case is None or not self.path.endswith("/.well-known/agent-card.json"):
                return self.say(405 if self.path.endswith("/mcp") else 404)
            body = case.raw if case.raw is not None else json.dumps(case.document)
            self.say(200, body.encode())

        def do_DELETE(self):
            self.say(200)

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in request:
                return self.say(202)
            self.say(200, json.dumps(self.case().answer(request)).encode())

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            """A client that has seen enough hangs up; that is no fault of ours."""

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def home():
    """The folder with the SDKs, and whether it has to be filled first."""
    if os.environ.get("FLEET_HOME"):
        return pathlib.Path(os.environ["FLEET_HOME"]), None
    made = tempfile.TemporaryDirectory(prefix="plumbline-clients-")
    folder = pathlib.Path(made.name)
    for _, how, name, packages in CLIENTS:
        if how.endswith(".py"):
            subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
            subprocess.run([folder / name / "bin/pip", "install", "-q", *packages], check=True)
        else:
            subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder / name, *packages], check=True)
    return folder, made


def version(folder, client):
    """What is installed there, so that a table never names another version than the one that ran."""
    name, how, place, _ = client
    package = name.split(" ")[0]
    if how.endswith(".py"):
        code = f"import importlib.metadata as m; print(m.version('{package}'))"
        return subprocess.run([folder / place / "bin/python", "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    return json.loads((folder / place / "node_modules" / package / "package.json").read_text())["version"]


def run(folder, client, url, cases):
    name, how, place, _ = client
    assert version(folder, client) == name.split(" ")[1], f"{name} was expected, {version(folder, client)} is installed"
    protocol, ending = how.split(".")
    script = HERE / f"{protocol}_client.{ending}"
    mine = [case for case in cases if case.protocol == protocol]
    command = [folder / place / "bin/python", script] if ending == "py" else ["node", script, folder / place]
    named = [case.name if protocol == "a2a" else f"{case.name}:{case.wanted}" for case in mine]
    done = subprocess.run([*command, url, *named], capture_output=True, text=True, timeout=540)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line["case"] for line in lines] == [case.name for case in mine], f"{name}: {done.stderr[-2000:]}"
    return {line["case"]: line["error"] for line in lines}


def short(error):
    """The first line of an error, without what differs from run to run."""
    line = re.sub(r"https?://127\.0\.0\.1:\d+/\w+", "https://HOST", " ".join(error.split()))
    return line if len(line) <= 160 else line[:159] + "…"


def table():
    rows = list(faults())
    for number, fault in enumerate(rows):
        fault["case"] = f"f{number}"
    overs = sorted({fault["over"] for fault in rows})
    controls = [Case(f"c{n}", over, base(over)) for n, over in enumerate(overs)]
    cases = [Case(f["case"], f["over"], faulty(f) if "raw" not in f else None, f.get("raw")) for f in rows]
    url = serve(controls + cases)
    folder, made = home()
    errors = {client[0]: run(folder, client, url, controls + cases) for client in CLIENTS}
    if made:
        made.cleanup()
    knows = {}
    for control in controls:
        for client, said in errors.items():
            if control.name in said:
                knows[client, control.over] = said[control.name] is None
    for fault in rows:
        case, fault["change"], fault["clients"] = fault.pop("case"), change(fault), {}
        for client, said in errors.items():
            if (client, fault["over"]) in knows:
                error = said[case]
                # What refuses the sound document as well says nothing about the fault.
                outcome = "unaware" if not knows[client, fault["over"]] else "opens" if error is None else "refuses"
                fault["clients"][client] = {"outcome": outcome}
                if outcome == "refuses":
                    fault["clients"][client]["says"] = short(error)
    return {"clients": [client[0] for client in CLIENTS], "rows": rows}


HEAD = """# Which clients does it break?

Each row is a document of ours with one fault, served on loopback and opened with released SDKs. *Opens* means that the SDK
takes the document and makes a client of it, or finishes the handshake and the list; whether something was lost on the way
is not said here. *Refuses* means that it ends with an error, shown under the table of the rule. *Unaware* means that the SDK
refuses the sound document of that revision as well, which says nothing about the fault.

The JavaScript SDK for A2A has its 0.3 compatibility switched on. `tests/clients/run.py` makes this page from nothing;
a test holds it against what the rules say about their impact.
"""


def page(data):
    lines = [HEAD]
    for protocol, title in (("a2a", "Agent cards"), ("mcp", "MCP servers")):
        rows = [row for row in data["rows"] if row["over"].startswith(protocol)]
        clients = [client for client in data["clients"] if client in rows[0]["clients"]]
        lines.append(f"\n## {title}\n")
        lines.append("| fault | document | " + " | ".join(clients) + " |")
        lines.append("| --- " * (len(clients) + 2) + "|")
        for row in rows:
            outcomes = [row["clients"][client]["outcome"] for client in clients]
            said = " | ".join(f"**{word}**" if word == "refuses" else word for word in outcomes)
            what = row["change"].replace("|", "\\|")
            lines.append(f"| `{row['rule']}` | {row['over']}: `{what}` | {said} |")
    lines.append("\n## What they say\n")
    for row in data["rows"]:
        for client, outcome in row["clients"].items():
            if "says" in outcome:
                says = outcome["says"].replace("`", "'")
                lines.append(f"- `{row['rule']}` in {row['over']}, {client}: `{says}`")
    return "\n".join(lines) + "\n"


def main():
    data = table()
    texts = {
        ROOT / "docs/clients.md": page(data),
        ROOT / "rules/src/clients.json": json.dumps(data, indent=1, ensure_ascii=False) + "\n",
    }
    if "--check" in sys.argv[1:]:
        differing = [str(path.relative_to(ROOT)) for path, text in texts.items() if not path.exists() or path.read_text() != text]
        sys.exit(f"{', '.join(differing)}: not what the SDKs do now; run tests/clients/run.py" if differing else 0)
    for path, text in texts.items():
        path.write_text(text)
    print(f"{len(data['rows'])} faults, {len(data['clients'])} clients")


main()
