// A client for the official conformance scenarios: it uses the server at the address that it is given, directly, or
// through aaep mcp when AAEP_MCP is set.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const url = process.argv.at(-1);
const transport = process.env.AAEP_MCP
  ? new StdioClientTransport({
      command: process.env.AAEP,
      args: ["mcp", "--policy", "tell", "--hub", process.env.AAEP_MCP_HUB, "--url", url],
      env: getDefaultEnvironment(),
    })
  : new StreamableHTTPClientTransport(new URL(url));
const client = new Client(
  { name: "check-mcp", version: "1.0.0" },
  { capabilities: { elicitation: { form: { applyDefaults: true } } } },
);
client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: {} }));
await client.connect(transport);
const { tools } = await client.listTools();
for (const tool of tools) {
  const args = tool.name === "add_numbers" ? { a: 2, b: 3 } : {};
  await client.callTool({ name: tool.name, arguments: args });
}
await client.close();
