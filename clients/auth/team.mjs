// Starts a copy of examples/team as its README says, on other ports, logs in as both users, and calls.
//
// node team.mjs FOLDER: the copy. SABIR names the binary.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

import { freePort } from "./issuer.mjs";
import { logIn } from "./person.mjs";

const folder = process.argv[2];
const [port, issuerPort] = [await freePort(), await freePort()];
for (const name of ["sabir.toml", "team.mjs"]) {
  const text = readFileSync(`${folder}/${name}`, "utf8");
  writeFileSync(`${folder}/${name}`, text.replaceAll("7331", port).replaceAll("7332", issuerPort));
}
const start = [`${folder}/team.mjs`];
const team = spawn(process.execPath, start, { stdio: ["ignore", "pipe", "pipe"] });
let said = "";
team.stdout.on("data", (text) => (said += text));
team.stderr.on("data", (text) => (said += text));
const exited = new Promise((done) => team.on("exit", done));
const tokens = [];
try {
  for (let tries = 0; ; tries++) {
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
    if (answer?.ok) break;
    if (tries > 300 || team.exitCode !== null) throw new Error("the team does not start");
    await new Promise((done) => setTimeout(done, 100));
  }
  const ann = await user("ann", ["list_notes", "add_note", "delete_note"]);
  const bob = await user("bob", ["list_notes"]);
  assert.equal((await ann.callTool({ name: "add_note", arguments: { name: "todo" } })).isError, undefined);
  assert.match((await bob.callTool({ name: "list_notes" })).content[0].text, /meeting.md\ntodo/);
  await assert.rejects(bob.callTool({ name: "delete_note", arguments: { name: "todo" } }));
  await ann.callTool({ name: "delete_note", arguments: { name: "todo" } });
  await Promise.all([ann.close(), bob.close()]);
} catch (error) {
  console.error(said);
  throw error;
} finally {
  team.kill("SIGTERM");
  await exited;
}
const denied = said.split("\n").find((line) => line.includes('"decision":"denied"'));
const { subject, name, address } = JSON.parse(denied);
assert.deepEqual({ subject, name, address }, { subject: "bob", name: "delete_note", address: "127.0.0.1" });
for (const token of tokens) assert.ok(!said.includes(token.split(".")[2]), "no token is logged");
console.log("ann and bob of examples/team logged in, and each could do what the roles say");

/// A client of a user, who sees these tools.
async function user(who, expected) {
  const { client, token } = await logIn(`http://127.0.0.1:${port}/mcp`, who);
  tokens.push(token);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), expected);
  return client;
}
