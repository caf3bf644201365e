// The real binary, and requests to it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";

/// Two tools, each with a scope of its own.
export const NOTES = `[[command]]
name = "read"
description = "Read notes"
run = ["echo", "notes"]
scopes = ["notes:read"]

[[command]]
name = "write"
description = "Write notes"
run = ["echo", "written"]
scopes = ["notes:write"]
`;

/// Waits until a condition is true; `what` says what happened instead.
export async function until(isSo, what) {
  for (let tries = 0; !(await isSo()); tries++) {
    if (tries > 600) throw new Error(what());
    await new Promise((done) => setTimeout(done, 100));
  }
}

/// Serves a configuration in a folder while `work` runs. `before` runs when it is written.
export async function serving({ sabir, folder, port, configuration, before }, work) {
  const file = `${folder}/sabir.toml`;
  writeFileSync(file, configuration);
  const env = { ...process.env, SECRET: "sabir-secret" };
  await before?.((args) => spawn(sabir, [...args, file], { env, stdio: ["ignore", "pipe", "pipe"] }));
  const args = ["serve", file, "--http", `127.0.0.1:${port}`, "--log", "debug"];
  const child = spawn(sabir, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (text) => (said += text));
  const exited = new Promise((done) => child.on("exit", done));
  const isUp = async () => (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined))?.ok;
  try {
    await until(isUp, () => `sabir does not listen: ${said}`);
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

/// The headers and the body of a modern request that lists the tools, or calls one.
export function modern(name = undefined) {
  const version = "2026-07-28";
  const method = name ? "tools/call" : "tools/list";
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": version,
    "mcp-method": method,
    ...(name && { "mcp-name": name }),
  };
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const params = { ...(name && { name, arguments: {} }), _meta };
  return { headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) };
}

/// Lists the tools with a token, or calls one.
export async function request(url, token, name = undefined) {
  const { headers, body } = modern(name);
  const authorization = `Bearer ${token}`;
  const response = await fetch(url, { method: "POST", headers: { ...headers, authorization }, body });
  const text = await response.text();
  const challenge = response.headers.get("www-authenticate") ?? "";
  return { status: response.status, challenge, text };
}
