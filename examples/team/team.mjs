// Starts the authorization server of a team and Sabir: `node team.mjs`. The variable SABIR names the
// binary; without it, it is the one in the PATH.

import { spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import http from "node:http";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

import { Provider } from "oidc-provider";

const ISSUER = "http://127.0.0.1:7332";
const RESOURCE = "http://127.0.0.1:7331/mcp";
const ROLES = { ann: ["owner"], bob: ["reader"] };

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...privateKey.export({ format: "jwk" }), kid: "one", use: "sig", alg: "RS256" };
const provider = new Provider(ISSUER, {
  jwks: { keys: [key] },
  cookies: { keys: [randomBytes(16).toString("hex")] },
  scopes: ["openid", "offline_access", "notes:read", "notes:write", "notes:admin"],
  pkce: { required: () => true },
  features: {
    // Pages on which every name and password is good: for an example, and nothing else.
    devInteractions: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => RESOURCE,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, audience) => ({
        scope: "notes:read notes:write notes:admin",
        audience,
        accessTokenFormat: "jwt",
        accessTokenTTL: 600,
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
  extraTokenClaims: (_context, token) => ({ roles: ROLES[token.accountId] ?? [] }),
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
const server = http.createServer(provider.callback());
await new Promise((done) => server.listen(7332, "127.0.0.1", done));

const folder = dirname(fileURLToPath(import.meta.url));
const sabir = spawn(process.env.SABIR ?? "sabir", ["serve", `${folder}/sabir.toml`], {
  stdio: ["ignore", "inherit", "inherit"],
});
console.log("log in as ann (owner) or bob (reader), with any password; Ctrl-C stops both servers");
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => sabir.kill("SIGTERM"));
sabir.on("exit", (code) => process.exit(code ?? 1));
