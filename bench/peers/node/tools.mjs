// What the two TypeScript peers share: how they are called, and their tools.
//
// The schemas are made once; a server, of which these SDKs want one per session (v1) or per
// request (v2, modern), only registers them.

import * as z from 'zod';

export const SERVER = { name: 'echo-server', version: '0.1.0' };

const echo = z.object({ text: z.string().describe('What to say') });

const search = z.object({
  query: z.string().describe('What to look for'),
  folder: z.string().nullish().describe('Where to look'),
  limit: z.int().nonnegative().nullish().describe('How many to find at most'),
});

const move = z.object({
  from: z.string().describe('What to move'),
  to: z.string().describe('Where to'),
});

const said = (text) => ({ content: [{ type: 'text', text }] });

/** Gives an McpServer, of either SDK, its twenty-one tools. */
export function addTools(server) {
  server.registerTool('echo', { description: 'Says what it is told', inputSchema: echo }, async ({ text }) => said(text));
  for (let n = 1; n <= 10; n += 1) {
    server.registerTool(
      `search_${n}`,
      { description: 'Looks for something', inputSchema: search },
      async ({ query, folder, limit }) => said(`${query} in ${folder}, at most ${limit}`),
    );
    server.registerTool(
      `move_${n}`,
      { description: 'Moves something', inputSchema: move },
      async ({ from, to }) => said(`${from} to ${to}`),
    );
  }
  return server;
}

/** `stdio`, or `http 127.0.0.1:PORT`: gives the address to listen on, or undefined for stdio. */
export function place() {
  const [kind, address, ...rest] = process.argv.slice(2);
  if (kind === 'stdio' && address === undefined) return undefined;
  const [, host, port] = /^(.+):(\d+)$/.exec(address ?? '') ?? [];
  if (kind === 'http' && host !== undefined && rest.length === 0) return { host, port: Number(port) };
  process.stderr.write('usage: PEER stdio | PEER http 127.0.0.1:PORT\n');
  process.exit(2);
}

/** The body of a request as JSON; undefined if it is none. */
export async function json(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}
