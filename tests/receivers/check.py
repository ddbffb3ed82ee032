"""Receivers of the documentation against a real message: signed by us, verified by libraries of other languages.

usage: check.py PLUMBLINE — needs PyPI `standardwebhooks` for this interpreter; the receiver for Node is run where
`node` is there and npm `standardwebhooks` is found from NODE_MODULES, the one in Rust where RUST_RECEIVER names it built.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ping(plumbline, port, secret):
    """Sends a signed message of every kind a receiver is shown; gives the exit status of the last."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "secret").write_text(secret)
        (folder / "plumbline.toml").write_text(
            f'database = "{folder}/w.db"\n'
            f'[alerts]\nallow_networks = ["127.0.0.1"]\nkey_file = "{folder}/key"\n'
            f'[[webhooks]]\nname = "r"\nurl = "http://127.0.0.1:{port}/hook"\nsecret_file = "{folder}/secret"\n'
        )
        for kind in ["ping", "finding.regressed", "target.down"]:
            command = [plumbline, "--config", folder / "plumbline.toml", "webhooks", "ping", "r", "--type", kind]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done


def check(name, command, plumbline):
    port = free_port()
    environment = {**os.environ, "PORT": str(port), "PLUMBLINE_WEBHOOK_SECRET": SECRET}
    receiver = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=HERE)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        good = ping(plumbline, port, SECRET)
        assert good.returncode == 0 and "answered 204" in good.stdout, f"{name}: {good.stdout}{good.stderr}"
        wrong = ping(plumbline, port, "whsec_" + "A" * 43 + "=")
        assert wrong.returncode == 1 and "answered 400" in wrong.stdout, f"{name} believed a wrong signature: {wrong.stdout}"
    finally:
        receiver.terminate()
        heard = receiver.communicate()[0]
    assert "finding.regressed" in heard and "target.down" in heard, f"{name} heard: {heard}"
    print(f"{name}: right signatures are believed, wrong ones are not")


def main():
    plumbline = pathlib.Path(sys.argv[1]).resolve()
    check("python", [sys.executable, HERE / "receiver.py"], plumbline)
    rust = os.environ.get("RUST_RECEIVER")
    if rust:
        check("rust", [rust], plumbline)
    elif os.environ.get("CI") == "true":
        sys.exit("RUST_RECEIVER names no receiver")
    else:
        print("rust: skipped, RUST_RECEIVER is not set")
    node = shutil.which("node")
    if node is None:
        if os.environ.get("CI") == "true":
            sys.exit("node is missing")
        print("node: skipped, it is not installed")
        return
    # Modules are looked for beside the file, so it is run from where the library was installed.
    modules = os.environ.get("NODE_MODULES")
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "receiver.mjs"
        shutil.copy(HERE / "receiver.mjs", script)
        if modules:
            (pathlib.Path(folder) / "node_modules").symlink_to(modules)
        check("node", [node, script], plumbline)


main()
