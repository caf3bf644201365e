// @modelcontextprotocol/sdk (v1) on node:http, with sessions and JSON answers. Legacy era only.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

import { addTools, place, SERVER } from './tools.mjs';

const sessions = new Map();

/** Creates a transport for a client without a session, which `initialize` then opens. */
async function opening() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await addTools(new McpServer(SERVER)).connect(transport);
  return transport;
}

async function serve(request, response) {
  if (request.url !== '/mcp') {
    response.writeHead(404).end();
    return;
  }
  const transport = sessions.get(request.headers['mcp-session-id']) ?? (await opening());
  await transport.handleRequest(request, response);
}

const address = place();
if (address === undefined) {
  await addTools(new McpServer(SERVER)).connect(new StdioServerTransport());
} else {
  createServer(serve).listen(address.port, address.host);
}
