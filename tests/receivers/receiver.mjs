// A whole receiver: believes a message when its signature is right and it is new. `npm install standardwebhooks`.
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.PLUMBLINE_WEBHOOK_SECRET);
const seen = new Set();

createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  try {
    const message = webhook.verify(Buffer.concat(pieces).toString(), request.headers);
    const id = request.headers["webhook-id"];
    if (!seen.has(id)) console.log(message.type, message.data.title ?? message.data.summary);
    seen.add(id);
    response.writeHead(204).end();
  } catch {
    response.writeHead(400).end();
  }
}).listen(Number(process.env.PORT ?? 9000), "127.0.0.1");
