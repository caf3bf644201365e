// Logs in to a real authorization server and calls the real binary with its tokens.
//
// node run.mjs SABIR FOLDER: the binary, and a folder for its configuration.

import assert from "node:assert/strict";

import { delegated } from "./delegated.mjs";
import { freePort, issuer, machineToken } from "./issuer.mjs";
import { logIn } from "./person.mjs";
import { NOTES, request, serving, until } from "./sabir.mjs";
import { spy } from "./spy.mjs";

const [sabir, folder] = process.argv.slice(2);

const port = await freePort();
const url = `http://127.0.0.1:${port}/mcp`;
const [first, second] = [await issuer(url), await issuer(url, { lifetime: 5 })];
const stranger = await issuer(url);
const opaque = await issuer(url, { format: "opaque" });
const upstream = await spy();

const here = { sabir, folder, port, url };
const list = (token, name) => request(url, token, name);

await serving({ ...here, configuration: callers([first.url, second.url], "") }, async () => {
  await person();
  await machines();
  await relayed();
});
const introspection = 'introspection = { client_id = "sabir", client_secret_env = "SECRET" }';
await serving({ ...here, configuration: callers([opaque.url], introspection) }, async () => {
  const token = await machineToken(opaque, url, "notes:read");
  assert.equal(token.split(".").length, 1, "an opaque token");
  assert.equal((await list(token)).status, 200);
  assert.equal((await list(`${token}x`)).status, 401);
});
console.log("a person and a machine came in with tokens of two issuers; forged ones did not");
await delegated(here, first, stranger);
console.log("callers logged in at an upstream on our page, and their tokens were exchanged for it");
for (const one of [first, second, stranger, opaque, upstream]) one.close();
process.exit(0);

/// The SDK finds the issuer, registers, sends a person to log in, and calls.
async function person() {
  const { client, start } = await logIn(url, "ann");
  assert.ok(start.href.startsWith(first.url), "the SDK has found the first issuer");
  assert.equal(start.searchParams.get("scope"), "notes:read");
  assert.equal(start.searchParams.get("resource"), url);
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

/// A valid token is not passed on to upstreams.
async function relayed() {
  const token = await machineToken(first, url, "notes:write");
  let said;
  // The upstream may not be ready yet.
  const isCalled = async () => (said = (await list(token, "up_look")).text).includes("spied");
  await until(isCalled, () => `the upstream was not called: ${said}`);
  assert.ok(upstream.seen.length > 0);
  for (const seen of upstream.seen) {
    assert.ok(!seen.toLowerCase().includes("authorization") && !seen.includes(token), seen);
  }
}

/// A configuration with these issuers.
function callers(issuers, more) {
  return `[auth]
issuer = ${JSON.stringify(issuers)}
scopes = ["notes:read"]
leeway = "1s"
${more}

${NOTES}
[[upstream]]
name = "up"
url = "${upstream.url}"
scopes = ["notes:write"]
`;
}
