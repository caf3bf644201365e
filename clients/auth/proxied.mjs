// The recipe of docs/auth.md for a server behind Caddy: the name, the certificate and the addresses are
// those of the proxy.
//
// node proxied.mjs SABIR FOLDER: the binary, and a folder for its configuration.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import https from "node:https";
import { fileURLToPath } from "node:url";

import { freePort, issuer, machineToken } from "./issuer.mjs";
import { logIn } from "./person.mjs";
import { modern, serving, until } from "./sabir.mjs";

const [sabir, folder, url] = process.argv.slice(2);
if (url) await asClient();
else await behindCaddy();
process.exit(0);

async function behindCaddy() {
  const [port, public_] = [await freePort(), await freePort()];
  const url = `https://localhost:${public_}/mcp`;
  const provider = await issuer(url);
  // As in the recipe; the name is one of this machine, and its authority is Caddy's own.
  writeFileSync(`${folder}/Caddyfile`, `{
    admin off
    auto_https disable_redirects
    skip_install_trust
}
https://localhost:${public_} {
    tls internal
    reverse_proxy 127.0.0.1:${port}
}
`);
  const configuration = `[http]
hosts = ["localhost:${public_}"]
trusted_proxies = ["127.0.0.1"]

[auth]
issuer = "${provider.url}"
resource = "${url}"
scopes = ["notes:read"]

[[command]]
name = "read"
description = "Read notes"
run = ["echo", "notes"]
scopes = ["notes:read"]

[audit]
file = "audit.jsonl"
`;
  const env = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const caddy = spawn("caddy", ["run", "--config", `${folder}/Caddyfile`], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  caddy.on("error", (error) => (said += error));
  caddy.stderr.on("data", (text) => (said += text));
  const ended = new Promise((done) => caddy.on("exit", done));
  try {
    const root = `${folder}/caddy/pki/authorities/local/root.crt`;
    await until(() => existsSync(root), () => `caddy has no certificate: ${said}`);
    await serving({ sabir, folder, port, configuration }, async () => {
      // Node reads further authorities only when it starts.
      const args = [fileURLToPath(import.meta.url), sabir, folder, url];
      const client = spawn(process.execPath, args, {
        env: { ...process.env, NODE_EXTRA_CA_CERTS: root },
        stdio: "inherit",
      });
      assert.equal(await new Promise((done) => client.on("exit", done)), 0);
      await addresses(url, provider, readFileSync(root));
    });
  } finally {
    caddy.kill("SIGTERM");
    await ended;
  }
  provider.close();
  console.log("ann logged in and called through Caddy, and the audit log has the clients' addresses");
}

/// A person who knows only the public URL.
async function asClient() {
  const { client, start } = await logIn(url, "ann");
  assert.equal(start.searchParams.get("resource"), url);
  const called = await client.callTool({ name: "read", arguments: {} });
  assert.match(called.content[0].text, /^notes/);
  await client.close();
}

/// The audit log has the real address of the client, not one that the client claims.
async function addresses(url, provider, ca) {
  const token = await machineToken(provider, url, "notes:read");
  const { headers: usual, body } = modern("read");
  const headers = { ...usual, authorization: `Bearer ${token}`, "x-forwarded-for": "203.0.113.9" };
  const options = { method: "POST", ca, headers, localAddress: "127.0.0.2" };
  const status = await new Promise((done, failed) => {
    const request = https.request(url.replace("localhost", "127.0.0.1"), { ...options, servername: "localhost" });
    request.setHeader("host", new URL(url).host);
    request.on("error", failed).on("response", (response) => done(response.resume().statusCode));
    request.end(body);
  });
  assert.equal(status, 200);
  const lines = () => readFileSync(`${folder}/audit.jsonl`, "utf8").trim().split("\n");
  await until(() => lines().length >= 2, () => `the audit log is short: ${lines()}`);
  assert.equal(JSON.parse(lines().at(-1)).address, "127.0.0.2");
}
