// @modelcontextprotocol/server (v2) on node:http, with JSON answers in both eras.
//
// The SDK's own fallback for the legacy era has no sessions and answers with event streams. So
// legacy sessions are kept here, as its documentation recommends, next to a modern handler.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, isInitializeRequest, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

import { addTools, json, place, SERVER } from './tools.mjs';

const server = () => addTools(new McpServer(SERVER));
const sessions = new Map();

async function opening() {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await server().connect(transport);
  return transport;
}

async function serve(modern, request, response) {
  if (request.url !== '/mcp') {
    response.writeHead(404).end();
    return;
  }
  const session = sessions.get(request.headers['mcp-session-id']);
  if (session !== undefined) {
    await session.handleRequest(request, response);
    return;
  }
  const body = await json(request);
  if (isInitializeRequest(body)) {
    const transport = await opening();
    await transport.handleRequest(request, response, body);
  } else {
    await modern(request, response, body);
  }
}

const address = place();
if (address === undefined) {
  serveStdio(server);
} else {
  const modern = toNodeHandler(createMcpHandler(server, { legacy: 'reject', responseMode: 'json' }));
  createServer((request, response) => serve(modern, request, response)).listen(address.port, address.host);
}
