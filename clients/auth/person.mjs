// A person with a client of the TypeScript SDK.

import assert from "node:assert/strict";

import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { login } from "./login.mjs";

const CALLBACK = "http://127.0.0.1:8456/callback";

/// Connects to the server at `url` as the person `name`: a client, its token, and where it began to
/// log in.
export async function logIn(url, name) {
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
  const back = await login(saved.start, name, CALLBACK);
  await transport.finishAuth(back.searchParams.get("code"));
  const client = new Client({ name: "test", version: "1" });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { authProvider: provider }),
  );
  return { client, start: saved.start, token: saved.tokens.access_token };
}
