// Opens agent cards with @a2a-js/sdk, its 0.3 compatibility switched on: reads the card, then makes a client from it.
// usage: node a2a_client.mjs SDK_FOLDER BASE CASE...; prints one JSON object a case.
import { pathToFileURL } from "node:url";
import { join } from "node:path";
const [folder, base, ...cases] = process.argv.slice(2);
const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } = await import(
  pathToFileURL(join(folder, "node_modules/@a2a-js/sdk/dist/client/index.js"))
);
const legacyCompat = { enabled: true };
const factory = new ClientFactory({
  cardResolver: new DefaultAgentCardResolver({ legacyCompat }),
  transports: [new JsonRpcTransportFactory({ legacyCompat }), new RestTransportFactory({ legacyCompat })],
});
for (const name of cases) {
  let error = null;
  try {
    await factory.createFromUrl(`${base}/${name}/`, ".well-known/agent-card.json");
  } catch (caught) {
    error = `${caught.name}: ${caught.message}`;
  }
  console.log(JSON.stringify({ case: name, error }));
}
