// Callers of two issuers, and an upstream with an authorization server of its own: each caller logs in
// there on our page, or Sabir exchanges the caller's token.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";

import { issuer, machineToken } from "./issuer.mjs";
import { Browser } from "./login.mjs";
import { logIn } from "./person.mjs";
import { request, serving, until } from "./sabir.mjs";
import { spy } from "./spy.mjs";

/// `first` and `second` issue the tokens of callers of Sabir at `url`.
export async function delegated({ sabir, folder, port, url }, first, second) {
  const upstream = await spy();
  const trusts = { issuer: first.url, audience: url };
  const owner = await issuer(upstream.url, { trusts });
  upstream.demand(owner.url);
  rmSync(`${folder}/credentials`, { recursive: true, force: true });
  const exchange = `kind = "exchange", issuer = "${owner.url}", client_id = "sabir", client_secret_env = "SECRET"`;
  const provider = `{ token_url = "${first.url}/token", client_id = "sabir", client_secret_env = "SECRET" }`;
  const entry = (name, auth) =>
    `[[upstream]]\nname = "${name}"\nurl = "${upstream.url}"\nmemory = "none"\nauth = { ${auth} }\n`;
  const configuration = `[auth]
issuer = ${JSON.stringify([first.url, second.url])}
scopes = ["notes:read"]
${entry("notes", 'kind = "oauth", folder = "credentials"')}
${entry("swap", exchange)}
${entry("jag", `${exchange}, provider = ${provider}`)}`;
  await serving({ sabir, folder, port, configuration, before: operator }, async () => {
    const [ann, bob] = [await logIn(url, "ann"), await logIn(url, "bob")];
    const look = async (token, name) => (await request(url, token, `${name}_look`)).text;
    for (const name of ["notes", "swap", "jag"]) {
      let listed;
      const isListed = async () => (listed = (await request(url, ann.token)).text).includes(`${name}_look`);
      await until(isListed, () => `${name} is not listed: ${listed}`);
    }
    await pages(ann.token, bob.token, look);
    await exchanges(ann.token, bob.token, look);
    for (const seen of upstream.seen) {
      assert.ok(!seen.includes(ann.token) && !seen.includes(bob.token), "no caller's token is passed on");
    }
    await Promise.all([ann.client.close(), bob.client.close()]);
  });
  for (const one of [upstream, owner]) one.close();

  /// The page makes sure that the browser's user is the caller, by a login at the caller's own issuer.
  async function pages(ann, bob, look) {
    const link = async (token) => (await look(token, "notes")).match(/http:\/\/[^ ]+\/connect\/[\w-]+/)?.[0];
    const forAnn = await link(ann);
    assert.ok(forAnn, "ann is asked to log in");
    const wrong = await new Browser("bob").visit(forAnn);
    assert.deepEqual([wrong.status, new URL(wrong.url).pathname], [403, "/connect/proof"], wrong.text);
    assert.match(wrong.text, /for another user/);
    assert.ok(await link(ann), "nothing is stored for ann");
    // A login that one browser began cannot be finished by another.
    const isProof = (url) => url.pathname === "/connect/proof";
    const { url: proof } = await new Browser("ann").visit(forAnn, isProof);
    assert.ok(proof.searchParams.get("code"));
    const other = await new Browser("ann").visit(proof);
    assert.deepEqual([other.status, other.text.trim()], [
      403,
      "This login was begun in another browser. Open the link again.",
    ]);
    const right = await new Browser("ann").visit(forAnn);
    assert.deepEqual([right.status, right.text.trim()], [
      200,
      "You are logged in to notes. You can close this window.",
    ]);
    assert.match(await look(ann, "notes"), /"text":"ann"/);
    assert.ok(await link(bob), "bob is not ann");
    // Callers of another issuer prove themselves there.
    const machine = await link(await machineToken(second, url, "notes:read"));
    const sent = await fetch(machine, { redirect: "manual" });
    assert.ok(sent.headers.get("location").startsWith(second.url), sent.headers.get("location"));
  }

  /// A caller's token becomes one of the upstream's authorization server, once for all calls.
  async function exchanges(ann, bob, look) {
    const before = { ...owner.counts };
    for (const name of ["swap", "jag"]) {
      const calls = [ann, bob, ann, bob, ann, bob].map((token) => look(token, name));
      (await Promise.all(calls)).forEach((text, nth) => {
        assert.ok(text.includes(`"text":"${nth % 2 ? "bob" : "ann"}"`), text);
      });
    }
    assert.equal(owner.counts.exchanges - before.exchanges, 2, "one for each token");
    assert.equal(first.counts.assertions, 2, "one for each token");
    // The upstream's authorization server trusts the first issuer only.
    const machine = await machineToken(second, url, "notes:read");
    assert.match(await look(machine, "swap"), /isError.*invalid_grant|invalid_grant.*isError/);
  }

  /// The operator logs in, so that the tools of `notes` are known.
  async function operator(start) {
    const child = start(["upstream", "login", "notes", "--no-browser"]);
    let said = "";
    child.stderr.on("data", (text) => (said += text));
    const exited = new Promise((done) => child.on("exit", done));
    const place = () => said.match(/http:\/\/\S+\/auth\?\S+/)?.[0];
    await until(place, () => `no link: ${said}`);
    await new Browser("operator").visit(place());
    assert.equal(await exited, 0, said);
  }
}
