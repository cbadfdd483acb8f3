// The server that the official conformance scenarios expect: tools, resources and prompts under the names that they ask
// for, with the official TypeScript SDK. Everything here goes through aaep mcp in one of two runs.
import { setTimeout as pause } from "node:timers/promises";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const text = (words) => ({ content: [{ type: "text", text: words }] });
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const embedded = (uri, words) => ({ type: "resource", resource: { uri, mimeType: "text/plain", text: words } });
const object = (properties = {}, required = []) => ({ type: "object", properties, required });
const named = [
  { const: "value1", title: "First Option" },
  { const: "value2", title: "Second Option" },
  { const: "value3", title: "Third Option" },
];
const plain = ["option1", "option2", "option3"];

const server = new Server(
  { name: "fixture", version: "1.0.0" },
  { capabilities: { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} } },
);

async function ask(message, schema) {
  const answer = await server.elicitInput({ message, requestedSchema: schema });
  return text(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
}

const tools = {
  test_simple_text: () => text("This is a simple text response for testing."),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: "audio", data: SILENCE, mimeType: "audio/wav" }] }),
  test_embedded_resource: () => ({ content: [embedded("test://embedded-resource", "This is an embedded resource content.")] }),
  test_multiple_content_types: () => ({
    content: [...text("Multiple content types test:").content, image, {
      type: "resource",
      resource: { uri: "test://mixed-content-resource", mimeType: "application/json", text: '{"test":"data","value":123}' },
    }],
  }),
  test_tool_with_logging: async () => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await server.sendLoggingMessage({ level: "info", data });
      await pause(50);
    }
    return text("Logged.");
  },
  test_error_handling: () => ({ ...text("This tool intentionally returns an error for testing"), isError: true }),
  test_tool_with_progress: async (_, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      const params = { progressToken, progress, total: 100, message: `Completed step ${progress} of 100` };
      if (progressToken !== undefined) await extra.sendNotification({ method: "notifications/progress", params });
      await pause(50);
    }
    return text(String(progressToken));
  },
  test_sampling: async ({ prompt }) => {
    const messages = [{ role: "user", content: { type: "text", text: prompt } }];
    const answer = await server.createMessage({ messages, maxTokens: 100 });
    return text(`LLM response: ${answer.content.text}`);
  },
  test_elicitation: ({ message }) =>
    ask(message, object({
      username: { type: "string", description: "User's response" },
      email: { type: "string", description: "User's email address" },
    }, ["username", "email"])),
  test_elicitation_sep1034_defaults: () =>
    ask("Please review and update the form fields with defaults", object({
      name: { type: "string", description: "User name", default: "John Doe" },
      age: { type: "integer", description: "User age", default: 30 },
      score: { type: "number", description: "User score", default: 95.5 },
      status: { type: "string", description: "User status", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", description: "Verification status", default: true },
    })),
  test_elicitation_sep1330_enums: () =>
    ask("Please select options from the enum fields", object({
      untitledSingle: { type: "string", enum: plain },
      titledSingle: { type: "string", oneOf: named },
      legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
      untitledMulti: { type: "array", items: { type: "string", enum: plain } },
      titledMulti: { type: "array", items: { anyOf: named } },
    })),
  json_schema_2020_12_tool: () => text("Done."),
};
const schemas = {
  test_sampling: object({ prompt: { type: "string" } }, ["prompt"]),
  test_elicitation: object({ message: { type: "string" } }, ["message"]),
  json_schema_2020_12_tool: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: { address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
    properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
    additionalProperties: false,
  },
};
server.setRequestHandler(types.ListToolsRequestSchema, () => ({
  tools: Object.keys(tools).map((name) => ({ name, description: `Tests ${name}`, inputSchema: schemas[name] ?? object() })),
}));
server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) => {
  const tool = tools[params.name];
  if (!tool) throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
  return tool(params.arguments ?? {}, extra);
});

server.setRequestHandler(types.ListResourcesRequestSchema, () => ({
  resources: ["static-text", "static-binary", "watched-resource"].map((name) => (
    { uri: `test://${name}`, name, description: `Tests ${name}`, mimeType: "text/plain" })),
}));
server.setRequestHandler(types.ListResourceTemplatesRequestSchema, () => ({
  resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }],
}));
server.setRequestHandler(types.ReadResourceRequestSchema, ({ params: { uri } }) => {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id) {
    const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
    return { contents: [{ uri, mimeType: "application/json", text: data }] };
  }
  if (uri === "test://static-binary") return { contents: [{ uri, mimeType: "image/png", blob: PIXEL }] };
  return { contents: [{ uri, mimeType: "text/plain", text: "This is the content of the static text resource." }] };
});
server.setRequestHandler(types.SubscribeRequestSchema, () => ({}));
server.setRequestHandler(types.UnsubscribeRequestSchema, () => ({}));

const says = (content) => ({ messages: [{ role: "user", content }] });
const words = (it) => ({ type: "text", text: it });
const prompts = {
  test_simple_prompt: () => says(words("This is a simple prompt for testing.")),
  test_prompt_with_arguments: ({ arg1, arg2 }) => says(words(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  test_prompt_with_embedded_resource: ({ resourceUri }) => says(embedded(resourceUri, "Embedded resource content for testing.")),
  test_prompt_with_image: () => says(image),
};
const takes = {
  test_prompt_with_arguments: ["arg1", "arg2"],
  test_prompt_with_embedded_resource: ["resourceUri"],
};
server.setRequestHandler(types.ListPromptsRequestSchema, () => ({
  prompts: Object.keys(prompts).map((name) => (
    { name, description: `Tests ${name}`, arguments: (takes[name] ?? []).map((it) => ({ name: it, required: true })) })),
}));
server.setRequestHandler(types.GetPromptRequestSchema, ({ params }) => prompts[params.name](params.arguments ?? {}));
server.setRequestHandler(types.CompleteRequestSchema, () => ({ completion: { values: [], total: 0, hasMore: false } }));

await server.connect(new StdioServerTransport());
