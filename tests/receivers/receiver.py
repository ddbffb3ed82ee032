"""A whole receiver: believes a message when its signature is right and it is new. `pip install standardwebhooks`."""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks.webhooks import Webhook

webhook, seen = Webhook(os.environ["PLUMBLINE_WEBHOOK_SECRET"]), set()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            message = webhook.verify(body, {name.lower(): value for name, value in self.headers.items()})
        except Exception:
            return self.answer(400)
        if self.headers["webhook-id"] not in seen:
            seen.add(self.headers["webhook-id"])
            print(message["type"], message["data"].get("title") or message["data"].get("summary"), flush=True)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver).serve_forever()
