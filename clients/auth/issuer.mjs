// An authorization server of this machine: oidc-provider, as its makers ship it.

import { generateKeyPairSync } from "node:crypto";
import http from "node:http";
import net from "node:net";

import { Provider } from "oidc-provider";

import { ASSERTION, EXCHANGE, addExchanges } from "./exchange.mjs";

/// Starts an issuer for one resource. The tokens are valid for `lifetime` seconds. It exchanges tokens
/// of the issuer `trusts`, without one its own.
export async function issuer(resource, { format = "jwt", lifetime = 600, trusts } = {}) {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const server = http.createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${server.address().port}`;
  const resourceServer = (_context, indicator) => ({
    scope: "notes:read notes:write",
    audience: indicator,
    accessTokenFormat: format,
    accessTokenTTL: lifetime,
    jwt: { sign: { alg: "RS256" } },
  });
  const provider = new Provider(url, {
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: "one", use: "sig", alg: "RS256" }] },
    cookies: { keys: ["for a test"] },
    scopes: ["openid", "offline_access", "notes:read", "notes:write"],
    clients: [
      {
        client_id: "machine",
        client_secret: "machine-secret",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
      {
        client_id: "sabir",
        client_secret: "sabir-secret",
        grant_types: ["client_credentials", EXCHANGE, ASSERTION],
        redirect_uris: [],
        response_types: [],
      },
    ],
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: resourceServer,
      },
    },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  });
  const trusted = trusts ?? { issuer: url, audience: resource };
  const counts = addExchanges(provider, privateKey, resourceServer, trusted);
  server.on("request", provider.callback());
  return { url, counts, close: () => server.close() };
}

/// A token of the client `machine`, without a user.
export async function machineToken(issuer, resource, scope) {
  const response = await fetch(`${issuer.url}/token`, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from("machine:machine-secret").toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
    },
    body: new URLSearchParams({ grant_type: "client_credentials", resource, scope }).toString(),
  });
  const answer = await response.json();
  if (!answer.access_token) throw new Error(`no token: ${JSON.stringify(answer)}`);
  return answer.access_token;
}

/// A free port of this machine.
export async function freePort() {
  const server = net.createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}
