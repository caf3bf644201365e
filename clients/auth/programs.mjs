// Programs that people use, each of which logs in as a person and calls: Claude Code, Codex and
// mcp-remote.
//
// node programs.mjs SABIR FOLDER CLIENTS: the binary, a folder for homes, and where the clients are
// installed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

import { freePort, issuer } from "./issuer.mjs";
import { Browser } from "./login.mjs";
import { NOTES, serving, until } from "./sabir.mjs";

const [sabir, folder, clients] = process.argv.slice(2);
const port = await freePort();
const url = `http://127.0.0.1:${port}/mcp`;
const provider = await issuer(url);
const configuration = `[auth]
issuer = "${provider.url}"
scopes = ["notes:read"]

${NOTES}`;
const QUIET = { DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" };
const claude = `${clients}/node_modules/@anthropic-ai/claude-code-linux-${process.arch}/claude`;

await serving({ sabir, folder, port, configuration }, async () => {
  await claudeCode();
  await codex();
  await mcpRemote();
});
console.log("Claude Code, Codex and mcp-remote logged in and were served");
provider.close();
process.exit(0);

async function claudeCode() {
  const env = home("claude", QUIET);
  assert.equal((await finished(claude, ["mcp", "add", "--transport", "http", "notes", url], env)).code, 0);
  // It logs in at a terminal only.
  await logInAt(start("script", ["-qec", `'${claude}' mcp login notes`, "/dev/null"], env), env);
  const { said } = await finished(claude, ["mcp", "get", "notes"], env);
  assert.match(said, /Status: ✔ Connected/, said);
}

async function codex() {
  const env = home("codex", {});
  mkdirSync(`${env.HOME}/.codex`);
  // A model is never asked, but Codex warms up its connection to one.
  const file = `model_provider = "nobody"
mcp_oauth_credentials_store = "file"

[model_providers.nobody]
name = "nobody"
base_url = "http://127.0.0.1:9/v1"

[mcp_servers.notes]
url = "${url}"
`;
  writeFileSync(`${env.HOME}/.codex/config.toml`, file);
  const program = `${clients}/node_modules/@openai/codex/bin/codex.js`;
  await logInAt(start(process.execPath, [program, "mcp", "login", "notes"], env), env);
  const server = start(process.execPath, [program, "app-server"], env);
  const ask = asker(server);
  await ask("initialize", { clientInfo: { name: "test", version: "1" } });
  server.child.stdin.write('{"method":"initialized"}\n');
  const { thread } = await ask("thread/start", { cwd: env.HOME });
  const call = { threadId: thread.id, server: "notes", tool: "read", arguments: {} };
  const called = await ask("mcpServer/tool/call", call);
  assert.match(called.content[0].text, /^notes/);
  server.child.stdin.end();
  await server.exited;
}

async function mcpRemote() {
  const env = home("remote", {});
  const program = `${clients}/node_modules/mcp-remote/dist/proxy.js`;
  const callback = await freePort();
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, url, `${callback}`],
    env: { ...env, MCP_REMOTE_CONFIG_DIR: `${env.HOME}/kept` },
    stderr: "pipe",
  });
  let said = "";
  transport.stderr.on("data", (text) => (said += text));
  const client = new Client({ name: "test", version: "1" });
  const connected = client.connect(transport);
  connected.catch(() => {});
  await until(() => link(said), () => `mcp-remote shows no link: ${said}`);
  await new Browser("ann").visit(link(said));
  await connected;
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ["read"]);
  const called = await client.callTool({ name: "read", arguments: {} });
  assert.match(called.content[0].text, /^notes/);
  await client.close();
}

/// Where a person begins to log in, if it was said.
function link(said) {
  return said.match(new RegExp(`${provider.url}/auth\\?[^\\s"'\\x1b]+`))?.[0];
}

/// Logs in with the browser that a program opens, which is sent back to the program at last.
async function logInAt(program, { HOME }) {
  const opened = () => existsSync(`${HOME}/opened`) && link(readFileSync(`${HOME}/opened`, "utf8"));
  await until(opened, () => `no page was opened: ${program.said()}`);
  await new Browser("ann").visit(opened());
  assert.equal(await program.exited, 0, program.said());
}

/// An environment with a home of its own.
function home(name, more) {
  const place = `${folder}/${name}`;
  mkdirSync(place, { recursive: true });
  // Programs open a page with the one or the other.
  for (const browser of ["browser", "xdg-open"]) {
    writeFileSync(`${place}/${browser}`, `#!/bin/sh\necho "$1" >'${place}/opened'\n`, { mode: 0o755 });
  }
  const PATH = `${place}:${process.env.PATH}`;
  return { PATH, HOME: place, BROWSER: `${place}/browser`, DISPLAY: ":9", ...more };
}

function start(command, args, env) {
  const child = spawn(command, args, { env, cwd: env.HOME, stdio: ["pipe", "pipe", "pipe"] });
  let said = "";
  child.stdout.on("data", (text) => (said += text));
  child.stderr.on("data", (text) => (said += text));
  const exited = new Promise((done) => child.on("exit", done));
  return { child, exited, said: () => said };
}

async function finished(command, args, env) {
  const program = start(command, args, env);
  program.child.stdin.end();
  return { code: await program.exited, said: program.said() };
}

/// Asks a program that answers in lines of JSON.
function asker({ child, said }) {
  const answers = new Map();
  let [rest, last] = ["", 0];
  child.stdout.on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) {
      if (message.id !== undefined && !message.method) answers.set(message.id, message);
    }
  });
  return async (method, params) => {
    const id = (last += 1);
    child.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
    await until(() => answers.has(id), () => `${method}: no answer: ${said()}`);
    const { result, error } = answers.get(id);
    assert.ok(result, `${method}: ${JSON.stringify(error)}`);
    return result;
  };
}
