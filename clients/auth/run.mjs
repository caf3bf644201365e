// Logs in to a real authorization server and calls the real binary with what it issued.
//
// node run.mjs SABIR FOLDER: the binary, and a folder for its configuration.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import net from "node:net";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { issuer, machineToken } from "./issuer.mjs";
import { login } from "./login.mjs";

const [sabir, folder] = process.argv.slice(2);
const CALLBACK = "http://127.0.0.1:8456/callback";

const port = await freePort();
const url = `http://127.0.0.1:${port}/mcp`;
const [first, second] = [await issuer(url), await issuer(url, { lifetime: 5 })];
const stranger = await issuer(url);
const opaque = await issuer(url, { format: "opaque" });

await serving([first.url, second.url], "", async () => {
  await person();
  await machines();
});
const introspection = 'introspection = { client_id = "sabir", client_secret_env = "SECRET" }';
await serving([opaque.url], introspection, async () => {
  const token = await machineToken(opaque, url, "notes:read");
  assert.equal(token.split(".").length, 1, "an opaque token");
  assert.equal((await list(token)).status, 200);
  assert.equal((await list(`${token}x`)).status, 401);
});
console.log("a person and a machine came in with tokens of two issuers; forged ones did not");
for (const one of [first, second, stranger, opaque]) one.close();
process.exit(0);

/// The SDK finds the issuer, registers, sends a person to log in, and calls.
async function person() {
  const saved = {};
  const provider = {
    redirectUrl: CALLBACK,
    clientMetadata: {
      client_name: "a test",
      redirect_uris: [CALLBACK],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      application_type: "native",
    },
    clientInformation: () => saved.client,
    saveClientInformation: (client) => void (saved.client = client),
    tokens: () => saved.tokens,
    saveTokens: (tokens) => void (saved.tokens = tokens),
    redirectToAuthorization: (start) => void (saved.start = start),
    saveCodeVerifier: (verifier) => void (saved.verifier = verifier),
    codeVerifier: () => saved.verifier,
  };
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const stranger = new Client({ name: "test", version: "1" });
  await assert.rejects(stranger.connect(transport), UnauthorizedError);
  assert.ok(saved.start.href.startsWith(first.url), "the SDK has found the first issuer");
  assert.equal(saved.start.searchParams.get("scope"), "notes:read");
  assert.equal(saved.start.searchParams.get("resource"), url);
  const back = await login(saved.start, "ann", CALLBACK);
  await transport.finishAuth(back.searchParams.get("code"));

  const client = new Client({ name: "test", version: "1" });
  const authorized = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  await client.connect(authorized);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ["read"], "what ann may use");
  const called = await client.callTool({ name: "read", arguments: {} });
  assert.match(called.content[0].text, /^notes/);
  await client.close();
}

/// Tokens without a person: good ones, expired ones, and those of strangers.
async function machines() {
  const good = await machineToken(first, url, "notes:read notes:write");
  assert.equal((await list(good)).status, 200);
  const short = await machineToken(second, url, "notes:read");
  assert.equal((await list(short)).status, 200, "the second issuer");
  const foreign = await machineToken(first, "https://other.example/mcp", "notes:read");
  const other = await list(foreign);
  assert.equal(other.status, 401);
  assert.match(other.challenge, /for another audience/);
  const unknown = await list(await machineToken(stranger, url, "notes:read"));
  assert.match(unknown.challenge, /from another issuer/);
  const [head, body, signature] = good.split(".");
  const forged = await list(`${head}.${body}.${signature.slice(0, -8)}AAAAAAAA`);
  assert.match(forged.challenge, /signature is wrong/);
}

/// Lists the tools with a token.
async function list(token) {
  const version = "2026-07-28";
  const response = await fetch(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": version,
      "mcp-method": "tools/list",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/list",
      params: {
        _meta: {
          "io.modelcontextprotocol/protocolVersion": version,
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    }),
  });
  await response.text();
  return { status: response.status, challenge: response.headers.get("www-authenticate") ?? "" };
}

/// Serves with these issuers while `work` runs.
async function serving(issuers, more, work) {
  writeFileSync(
    `${folder}/sabir.toml`,
    `[auth]
issuer = ${JSON.stringify(issuers)}
scopes = ["notes:read"]
leeway = "1s"
${more}

[[command]]
name = "read"
description = "Read notes"
run = ["echo", "notes"]
scopes = ["notes:read"]

[[command]]
name = "write"
description = "Write notes"
run = ["echo", "written"]
scopes = ["notes:write"]
`,
  );
  const args = ["serve", `${folder}/sabir.toml`, "--http", `127.0.0.1:${port}`, "--log", "debug"];
  const env = { ...process.env, SECRET: "sabir-secret" };
  const child = spawn(sabir, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (text) => (said += text));
  const exited = new Promise((done) => child.on("exit", done));
  try {
    for (let tries = 0; ; tries++) {
      const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
      if (answer?.ok) break;
      if (tries > 300) throw new Error(`sabir does not listen: ${said}`);
      await new Promise((done) => setTimeout(done, 100));
    }
    await work();
  } catch (error) {
    console.error(said);
    throw error;
  } finally {
    child.kill("SIGTERM");
    await exited;
  }
  assert.ok(!said.includes("eyJ"), "no token is logged");
}

async function freePort() {
  const server = net.createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}
