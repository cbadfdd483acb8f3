// Serves a program that speaks MCP on standard input and output over HTTP, one program for each session, so that the
// official conformance scenarios, which speak HTTP, can try it. It changes no message.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const [command, ...args] = process.argv.slice(2);
const sessions = new Map();

async function open() {
  const program = new StdioClientTransport({
    command,
    args,
    env: { ...getDefaultEnvironment(), AAEP_HUB: process.env.AAEP_MCP_HUB ?? "" },
    stderr: "ignore",
  });
  const client = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => sessions.set(id, client),
  });
  let last;
  const tokens = new Map();
  client.onmessage = (message) => {
    if (message.method && message.id !== undefined) {
      last = message.id;
      const token = message.params?._meta?.progressToken;
      if (token !== undefined) tokens.set(token, message.id);
    }
    program.send(message).catch(() => {});
  };
  program.onmessage = (message) => {
    // Scenarios wait for notifications and requests on the stream of the request that they belong to.
    const isAnswer = message.method === undefined;
    const owner = tokens.get(message.params?.progressToken) ?? last;
    const about = isAnswer || message.method.endsWith("list_changed") ? {} : { relatedRequestId: owner };
    client.send(message, about).catch(() => client.send(message).catch(() => {}));
  };
  client.onclose = () => program.close();
  await program.start();
  await client.start();
  return client;
}

const server = createServer(async (request, response) => {
  try {
    const known = sessions.get(request.headers["mcp-session-id"]);
    await (known ?? (await open())).handleRequest(request, response);
  } catch (error) {
    if (!response.headersSent) response.writeHead(500).end(String(error));
  }
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
