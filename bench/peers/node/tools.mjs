// Shared by the two TypeScript peers: their command line and their tools.
//
// The schemas are created once. These SDKs need a server per session (v1) or per modern request
// (v2), which only registers them.

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

const textResult = (text) => ({ content: [{ type: 'text', text }] });

/** Registers the twenty-one tools with an McpServer of either SDK. */
export function addTools(server) {
  server.registerTool('echo', { description: 'Says what it is told', inputSchema: echo }, async ({ text }) => textResult(text));
  server.registerTool(
    'wait',
    { description: 'Waits once, then says what it is told', inputSchema: echo },
    async ({ text }) => {
      await new Promise(setImmediate);
      return textResult(text);
    },
  );
  for (let n = 1; n <= 10; n += 1) {
    server.registerTool(
      `search_${n}`,
      { description: 'Looks for something', inputSchema: search },
      async ({ query, folder, limit }) => textResult(`${query} in ${folder}, at most ${limit}`),
    );
    if (n === 10) break; // twenty-one tools, as the other servers have
    server.registerTool(
      `move_${n}`,
      { description: 'Moves something', inputSchema: move },
      async ({ from, to }) => textResult(`${from} to ${to}`),
    );
  }
  return server;
}

/** Reads `stdio` or `http 127.0.0.1:PORT`. Returns the address, or undefined for stdio. */
export function place() {
  const [kind, address, ...rest] = process.argv.slice(2);
  if (kind === 'stdio' && address === undefined) return undefined;
  const [, host, port] = /^(.+):(\d+)$/.exec(address ?? '') ?? [];
  if (kind === 'http' && host !== undefined && rest.length === 0) return { host, port: Number(port) };
  process.stderr.write('usage: PEER stdio | PEER http 127.0.0.1:PORT\n');
  process.exit(2);
}

/** Parses the body of a request as JSON. Returns undefined if it is invalid. */
export async function json(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}
