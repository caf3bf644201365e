// An upstream that remembers all headers that it is sent.

import http from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createRemoteJWKSet, jwtVerify } from "jose";

/// Starts it, with one tool, which tells whose token came. `demand(issuer)` makes it demand tokens.
export async function spy() {
  const seen = [];
  let issuer;
  const server = http.createServer(async (request, response) => {
    if (request.url.startsWith("/.well-known/") && issuer) return respond(response, 200, about());
    seen.push(`${request.url} ${JSON.stringify(request.rawHeaders)}`);
    const who = issuer ? await caller(request) : "spied";
    if (!who) {
      const challenge = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource"`;
      return respond(response.setHeader("www-authenticate", challenge), 401, {});
    }
    const mcp = new McpServer({ name: "spy", version: "1" });
    const reply = { content: [{ type: "text", text: `${who}` }] };
    mcp.registerTool("look", { description: "Looks" }, () => reply);
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    await mcp.connect(transport);
    await transport.handleRequest(request, response);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const origin = `http://127.0.0.1:${server.address().port}`;
  const url = `${origin}/mcp`;

  const about = () => ({
    resource: url,
    authorization_servers: [issuer],
    scopes_supported: ["notes:read"],
  });
  const caller = async ({ headers }) => {
    const token = headers.authorization?.match(/^Bearer (.+)$/)?.[1];
    const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
    const checked = token && (await jwtVerify(token, keys, { issuer, audience: url }).catch(() => undefined));
    return checked?.payload.sub;
  };
  return { url, seen, demand: (url) => void (issuer = url), close: () => server.close() };
}

function respond(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
