"""A real Prometheus Alertmanager: what our format `alertmanager` sends appears there, with few labels, and resolves.

usage: alertmanager.py PLUMBLINE — needs Debian's `prometheus-alertmanager`, which has `amtool` beside it.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def asked(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def until(what, look):
    """Looks again until it is so, for half a minute."""
    for _ in range(150):
        try:
            found = look()
        except OSError:
            found = None
        if found is not None:
            return found
        time.sleep(0.2)
    sys.exit(f"not so after half a minute: {what}")


def main():
    plumbline = pathlib.Path(sys.argv[1]).resolve()
    server = shutil.which("prometheus-alertmanager")
    if server is None:
        if os.environ.get("CI") == "true":
            sys.exit("prometheus-alertmanager is missing")
        print("alertmanager: skipped, it is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        port = free_port()
        (folder / "alertmanager.yml").write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
        log = open(folder / "log", "w")
        process = subprocess.Popen(
            [server, f"--config.file={folder}/alertmanager.yml", f"--storage.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="],
            stdout=log, stderr=log,
        )
        base = f"http://127.0.0.1:{port}"
        try:
            until("it answers", lambda: asked(f"{base}/api/v2/status"))
            version = asked(f"{base}/api/v2/status")["versionInfo"]["version"]
            (folder / "plumbline.toml").write_text(
                f'database = "{folder}/w.db"\n'
                f'[alerts]\nallow_networks = ["127.0.0.1"]\nkey_file = "{folder}/key"\n'
                f'[[webhooks]]\nname = "am"\nformat = "alertmanager"\nurl = "{base}/api/v2/alerts"\n'
            )

            def send(kind):
                command = [plumbline, "--config", folder / "plumbline.toml", "webhooks", "ping", "am", "--type", kind]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert done.returncode == 0 and "answered 200" in done.stdout, done.stdout + done.stderr

            def active():
                return asked(f"{base}/api/v2/alerts?active=true&silenced=false&inhibited=false")

            send("alert_group.opened")
            alerts = until("the alert is there", lambda: active() or None)
            assert len(alerts) == 1, alerts
            labels = alerts[0]["labels"]
            assert set(labels) == {"alertname", "plumbline"} and labels["alertname"] == "Plumbline", labels
            assert "12 findings regressed" in alerts[0]["annotations"]["summary"], alerts
            assert alerts[0]["generatorURL"].startswith("http"), alerts
            send("alert_group.updated")
            assert len(active()) == 1, "an update is the same alert"
            query = ["amtool", f"--alertmanager.url={base}", "alert", "query", "alertname=Plumbline", "--output=json"]
            told = json.loads(subprocess.run(query, capture_output=True, text=True, check=True).stdout)
            assert [one["fingerprint"] for one in told] == [alerts[0]["fingerprint"]], told
            send("target.down")
            until("another trouble is another alert", lambda: len(active()) == 2 or None)
            send("alert_group.resolved")
            left = until("the first is over", lambda: active() if len(active()) == 1 else None)
            assert left[0]["labels"]["plumbline"] != labels["plumbline"], left
            send("target.recovered")
            until("the second is over", lambda: None if active() else True)
            print(f"alertmanager {version}: alerts appear once, are updated, and resolve")
        finally:
            process.terminate()
            process.wait()


main()
