// Runs Prism's mock servers in one process, for prism.py.
//
// usage: prism.mjs FOLDER, the folder of the npm installation of @stoplight/prism-cli
//
// Reads a JSON value per line: {"open": FILE} starts a server and is answered by {"port": N} or
// {"error": TEXT}; {"mark": N} is answered by itself, after what Prism said of the requests before:
// {"passed": true}, {"violation": TEXT}, or {"failure": TEXT} if it could not answer.

import { subscribe } from 'node:diagnostics_channel';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.argv[2]}/`);
const { createLogger } = require('@stoplight/prism-core');
const { getHttpOperationsFromSpec } = require('@stoplight/prism-http');
const { createServer } = require('@stoplight/prism-http-server');

const say = value => process.stdout.write(`${JSON.stringify(value)}\n`);
// An unhandled rejection would leave its request without an answer.
let last;
subscribe('http.server.request.start', ({ response }) => (last = response));
process.on('unhandledRejection', reason => {
  say({ failure: String(reason) });
  last?.writeHead(500).end();
});
for (const name of ['log', 'info', 'warn', 'error']) console[name] = () => {};

const log = {
  write(line) {
    const { level, name, msg } = JSON.parse(line);
    const [, failure] = /^Request terminated with error: (.*)/.exec(msg) ?? [];
    if (failure) say({ failure });
    else if (name === 'VALIDATOR' && level >= 50) say({ violation: msg });
    else if (msg.startsWith('The request passed the validation rules')) say({ passed: true });
  },
};

async function open(file) {
  const operations = await getHttpOperationsFromSpec(file);
  const config = {
    isProxy: false, validateRequest: true, validateResponse: false, checkSecurity: true,
    errors: false, upstreamProxy: undefined, mock: { dynamic: false },
  };
  const components = { logger: createLogger('PRISM', {}, log) };
  const server = createServer(operations, { cors: false, config, components });
  return Number(new URL(await server.listen(0, '127.0.0.1')).port);
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  if ('open' in asked) {
    await open(asked.open).then(port => say({ port }), error => say({ error: String(error) }));
  } else {
    say(asked);
  }
}
process.exit(0);
