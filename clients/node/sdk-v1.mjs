// TypeScript SDK v1: the client most servers in the field were written against.
// It knows the handshake only. Over HTTP it ends its session with DELETE; it is
// also the one that still speaks the old HTTP+SSE transport.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { call, job, ME, report, textOf, toolNames } from './job.mjs';

await report(async () => {
  const transport = transportFor(job);

  // v1 tells the agreed revision to the transport only.
  let revision;
  const agreed = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    revision = version;
    agreed?.(version);
  };

  const client = new Client(ME);
  await client.connect(transport);
  const tools = await toolNames(client);
  const result = await call(client);
  await transport.terminateSession?.();
  await client.close();
  return { revision, tools, text: textOf(result), structured: result.structuredContent };
});

function transportFor({ stdio, http, sse }) {
  if (stdio) return new StdioClientTransport({ command: stdio[0], args: stdio.slice(1) });
  if (http) return new StreamableHTTPClientTransport(new URL(http));
  return new SSEClientTransport(new URL(sse));
}
