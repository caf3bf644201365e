// How a server gets a token for a caller without the caller: grants that oidc-provider leaves to its
// users. An issuer exchanges access tokens of the issuer that it trusts for its own (RFC 8693), gives
// assertions for them (ID-JAG), and takes such assertions (RFC 7523).

import { SignJWT, createRemoteJWKSet, jwtVerify } from "jose";
import { errors } from "oidc-provider";

export const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
export const ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TYPE = "urn:ietf:params:oauth:token-type:";
const JAG = "oauth-id-jag+jwt";

/// Adds the grants to a provider. `trusted` has the issuer and the audience of the tokens that it takes.
export function addExchanges(provider, privateKey, resourceServer, trusted) {
  const counts = { exchanges: 0, assertions: 0 };

  const check = async (token, expected) => {
    const keys = createRemoteJWKSet(new URL(`${trusted.issuer}/jwks`));
    try {
      const { payload } = await jwtVerify(token, keys, { issuer: trusted.issuer, ...expected });
      return payload;
    } catch (error) {
      throw new errors.InvalidGrant(error.message);
    }
  };

  const grant = async (ctx, accountId) => {
    const { client, params } = ctx.oidc;
    if (!params.resource) throw new errors.InvalidTarget("no resource");
    const token = new provider.AccessToken({ accountId, client, gty: "exchange", scope: params.scope });
    const { resource } = params;
    token.resourceServer = new provider.ResourceServer(resource, resourceServer(ctx, resource));
    ctx.body = {
      access_token: await token.save(),
      issued_token_type: `${TYPE}access_token`,
      token_type: "Bearer",
      expires_in: token.expiration,
    };
  };

  const assertion = async (ctx, sub) => {
    const { audience, resource, scope } = ctx.oidc.params;
    counts.assertions += 1;
    const signed = new SignJWT({ client_id: "sabir", resource, scope })
      .setProtectedHeader({ alg: "RS256", kid: "one", typ: JAG })
      .setIssuer(provider.issuer)
      .setSubject(sub)
      .setAudience(audience)
      .setJti(crypto.randomUUID())
      .setIssuedAt()
      .setExpirationTime("60s");
    ctx.body = {
      access_token: await signed.sign(privateKey),
      issued_token_type: `${TYPE}id-jag`,
      token_type: "N_A",
      expires_in: 60,
    };
  };

  const exchanged = ["subject_token", "subject_token_type", "requested_token_type"];
  provider.registerGrantType(
    EXCHANGE,
    async (ctx) => {
      const { subject_token: subject, subject_token_type: type } = ctx.oidc.params;
      if (type !== `${TYPE}access_token`) throw new errors.InvalidRequest("unknown token type");
      const { sub } = await check(subject, { audience: trusted.audience, typ: "at+jwt" });
      counts.exchanges += 1;
      const isJag = ctx.oidc.params.requested_token_type === `${TYPE}id-jag`;
      await (isJag ? assertion(ctx, sub) : grant(ctx, sub));
    },
    [...exchanged, "audience", "resource", "scope"],
  );

  const used = new Set();
  provider.registerGrantType(
    ASSERTION,
    async (ctx) => {
      const { client, params } = ctx.oidc;
      const claims = await check(params.assertion, { audience: provider.issuer, typ: JAG });
      const isOurs = claims.client_id === client.clientId && claims.resource === params.resource;
      if (!isOurs || used.has(claims.jti)) throw new errors.InvalidGrant("not for you, or used");
      used.add(claims.jti);
      await grant(ctx, claims.sub);
    },
    ["assertion", "resource", "scope"],
  );
  return counts;
}
