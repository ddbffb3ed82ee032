// Opens MCP servers with @modelcontextprotocol/sdk: the handshake, then the list a case is about.
// usage: node mcp_client.mjs SDK_FOLDER BASE CASE:LIST...; prints one JSON object a case.
import { pathToFileURL } from "node:url";
import { join } from "node:path";
const [folder, base, ...cases] = process.argv.slice(2);
const esm = (path) => import(pathToFileURL(join(folder, "node_modules/@modelcontextprotocol/sdk/dist/esm", path)));
const { Client } = await esm("client/index.js");
const { StreamableHTTPClientTransport } = await esm("client/streamableHttp.js");
const lists = {
  tools: (client, options) => client.listTools({}, options),
  resources: (client, options) => client.listResources({}, options),
  resource_templates: (client, options) => client.listResourceTemplates({}, options),
  prompts: (client, options) => client.listPrompts({}, options),
};
for (const one of cases) {
  const [name, wanted] = one.split(":");
  const client = new Client({ name: "one-fault", version: "1.0.0" });
  const options = { timeout: 5000 };
  let error = null;
  try {
    await client.connect(new StreamableHTTPClientTransport(new URL(`${base}/${name}/mcp`)), options);
    if (wanted) await lists[wanted](client, options);
  } catch (caught) {
    error = `${caught.name}: ${caught.message}`;
  }
  await client.close().catch(() => {});
  console.log(JSON.stringify({ case: name, error }));
}
process.exit(0);
