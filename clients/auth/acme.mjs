// Certificates of a real authority: Pebble, the test server of Let's Encrypt. It checks our name by
// TLS-ALPN-01, answers some good nonces as bad ones, and forgets accounts when it starts again.
//
// node acme.mjs SABIR FOLDER: the binary, and a folder for its configuration.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import https from "node:https";
import tls from "node:tls";

import { freePort } from "./issuer.mjs";
import { modern, until } from "./sabir.mjs";

const [sabir, folder] = process.argv.slice(2);
const NAME = "mcp.example.test";
const [port, directory, management, dns, control] = [
  await freePort(),
  await freePort(),
  await freePort(),
  await freePort(),
  await freePort(),
];
const children = [];

/// Starts a program; returns its output so far, and a function that stops it.
function start(program, args, env = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const started = { said: "" };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text) => (started.said += text));
  }
  child.on("error", (error) => (started.said += error));
  const exited = new Promise((done) => child.on("exit", done));
  started.stop = async () => {
    child.kill("SIGTERM");
    await exited;
  };
  children.push(child);
  return started;
}

/// Sends a request to a port of this machine, whose certificate is for `name`.
function get(url, ca, name = "localhost", { method = "GET", headers = {}, body } = {}) {
  return new Promise((done, failed) => {
    const options = { ca, servername: name, method, headers: { connection: "close", ...headers } };
    const request = https.request(url, options, (response) => {
      const certificate = response.socket.getPeerCertificate().fingerprint256;
      let text = "";
      response.on("data", (more) => (text += more));
      response.on("end", () => done({ status: response.statusCode, text, certificate }));
    });
    request.on("error", failed);
    request.end(body);
  });
}

/// Calls the tool as a client that trusts `ca`.
async function call(ca) {
  const { headers: usual, body } = modern("read");
  const headers = { ...usual, host: NAME };
  const answer = await get(`https://127.0.0.1:${port}/mcp`, ca, NAME, { method: "POST", headers, body });
  assert.equal(answer.status, 200, answer.text);
  assert.match(answer.text, /the notes/);
  return answer.certificate;
}

async function pebble() {
  const args = ["-config", `${folder}/pebble.json`, "-dnsserver", `127.0.0.1:${dns}`, "-strict"];
  const started = start("pebble", args, { PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "15" });
  const own = readFileSync(`${folder}/pebble.pem`);
  const isUp = async () => get(`https://127.0.0.1:${directory}/dir`, own).catch(() => undefined);
  await until(isUp, () => `pebble does not listen: ${started.said}`);
  const root = async () => (await get(`https://127.0.0.1:${management}/roots/0`, own)).text;
  return { ...started, root: await root() };
}

async function main() {
  const names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
  const added = ["-addext", names, "-addext", "basicConstraints=critical,CA:FALSE"];
  const made = ["-keyout", `${folder}/pebble.key`, "-out", `${folder}/pebble.pem`, ...added];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=Pebble"];
  execFileSync("openssl", ["req", "-x509", "-nodes", "-days", "2", ...key, ...made], { stdio: "pipe" });
  writeFileSync(
    `${folder}/pebble.json`,
    JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${directory}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate: `${folder}/pebble.pem`,
        privateKey: `${folder}/pebble.key`,
        httpPort: 1,
        tlsPort: port,
      },
    }),
  );
  const none = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-management", `127.0.0.1:${control}`];
  const resolver = ["-dns01", `127.0.0.1:${dns}`, "-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""];
  start("pebble-challtestsrv", [...none, ...resolver]);

  // The directory is not there yet.
  writeFileSync(
    `${folder}/sabir.toml`,
    `[http]
hosts = ["${NAME}"]

[tls]
acme = ["${NAME}", "other.example.test"]
acme_contact = "ann@example.test"
acme_cache = "kept"
acme_directory = "https://127.0.0.1:${directory}/dir"
acme_ca = "pebble.pem"

[[command]]
name = "read"
description = "Read notes"
run = ["echo", "the notes"]
`,
  );
  const serve = () => start(sabir, ["serve", `${folder}/sabir.toml`, "--http", `127.0.0.1:${port}`]);
  const says = (server, what) => until(() => server.said.includes(what), () => server.said);
  let server = serve();
  await says(server, "error: tls: cannot obtain a certificate: ");
  const authority = await pebble();
  await says(server, "tls: obtained a certificate, which is valid until ");
  const first = await call(authority.root);

  // A client that offers the protocol of the challenge is not served.
  const stale = tls.connect({ port, servername: NAME, ALPNProtocols: ["acme-tls/1"], rejectUnauthorized: false });
  await assert.rejects(new Promise((done, failed) => stale.on("secureConnect", done).on("error", failed)));

  await server.stop();
  assert.equal(statSync(`${folder}/kept`).mode & 0o777, 0o700);
  const kept = readdirSync(`${folder}/kept`);
  for (const file of kept) assert.equal(statSync(`${folder}/kept/${file}`).mode & 0o777, 0o600);

  // The stored certificate is used without the authority.
  await authority.stop();
  server = serve();
  await says(server, "tls: the certificate is valid until ");
  assert.equal(await call(authority.root), first);
  await server.stop();

  // A damaged certificate is replaced, by an authority that does not know the account any more.
  const pem = kept.find((file) => file.endsWith(".pem"));
  writeFileSync(`${folder}/kept/${pem}`, "damaged");
  const other = await pebble();
  server = serve();
  await says(server, "tls: obtained a certificate, which is valid until ");
  assert.notEqual(await call(other.root), first);
  await server.stop();
  await other.stop();
  console.log("acme: obtained, kept and replaced certificates of Pebble");
}

try {
  await main();
} finally {
  for (const child of children) child.kill("SIGTERM");
}
process.exit(0);
