// A provider of OpenID Connect (the npm package oidc-provider, which is certified) for the tests: everybody is let in by whatever name they
// type, and the keys are new with every start.

import { generateKeyPairSync, randomUUID } from 'node:crypto';

const [entry, port] = process.argv.slice(2);
const { default: Provider } = await import(entry);

const key = (kind, options) => ({
  ...generateKeyPairSync(kind, options).privateKey.export({ format: 'jwk' }),
  kid: randomUUID(),
  use: 'sig',
});

const client = (client_id, id_token_signed_response_alg, more) => ({
  client_id,
  id_token_signed_response_alg,
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/sign-in/oidc/127.0.0.1'],
  token_endpoint_auth_method: 'none',
  ...more,
});

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    client('syncline', 'RS256'),
    client('syncline-es256', 'ES256', {
      client_secret: 'a secret of this server/1',
      token_endpoint_auth_method: 'client_secret_basic',
    }),
    client('syncline-eddsa', 'EdDSA'),
  ],
  claims: { openid: ['sub'], profile: ['preferred_username'] },
  cookies: { keys: [randomUUID()] },
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'EdDSA'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, preferred_username: id.split('/').at(-1) }),
  }),
  jwks: {
    keys: [
      key('rsa', { modulusLength: 2048 }),
      key('ec', { namedCurve: 'P-256' }),
      key('ed25519'),
    ],
  },
});

// Servers of the tests have other ports with every start, and browsers come back to a path that is named after them.
provider.Client.prototype.redirectUriAllowed = (uri) =>
  /^http:\/\/127\.0\.0\.1:\d+\/sign-in\/oidc\/[a-z0-9.-]+$/.test(uri);

provider.listen(Number(port), '127.0.0.1');
