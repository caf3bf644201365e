// TypeScript client v2: both eras. Modes: legacy, auto, or a revision to pin.
// Over stdio `auto` asks `server/discover` of a sibling process first.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { call, job, ME, report, textOf, toolNames } from './job.mjs';

await report(async () => {
  const transport = job.stdio
    ? new StdioClientTransport({ command: job.stdio[0], args: job.stdio.slice(1) })
    : new StreamableHTTPClientTransport(new URL(job.http));
  const mode = ['legacy', 'auto'].includes(job.mode) ? job.mode : { pin: job.mode };

  const client = new Client(ME, { versionNegotiation: { mode } });
  await client.connect(transport);
  const revision = client.getNegotiatedProtocolVersion();
  const tools = await toolNames(client);
  const result = await call(client);
  await transport.terminateSession?.();
  await client.close();
  return { revision, tools, text: textOf(result), structured: result.structuredContent };
});
