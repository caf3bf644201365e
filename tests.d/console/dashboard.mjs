// Every query of docs/grafana.json is answered by a real Prometheus that scrapes the real binary.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';

const { FIXTURE, ROOT, SABIR, SCRATCH } = process.env;
const REVISION = '2026-07-28';
const PATIENCE = 120_000;

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const { port } = server.address();
  await new Promise((resolve) => { server.close(resolve); });
  return port;
}

async function startSabir(folder) {
  await mkdir(path.join(folder, 'articles'));
  await writeFile(path.join(folder, 'articles', 'tea.md'), '# Tea\n\nGreen.\n');
  await writeFile(path.join(folder, 'sabir.toml'), `
[[articles]]
path = "articles"

[[upstream]]
name = "old"
run = ["${FIXTURE}", "stdio", "2025-06-18"]

[[upstream]]
name = "gone"
url = "http://127.0.0.1:${await freePort()}/mcp"
`);
  const child = spawn(SABIR, ['serve', '--http', '127.0.0.1:0'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  const url = await new Promise((resolve, reject) => {
    child.stderr.on('data', (piece) => {
      said += piece;
      const found = /on (http:\/\/\S+)/.exec(said);
      if (found) resolve(new URL(found[1]));
    });
    child.on('exit', () => reject(new Error(`sabir has exited: ${said}`)));
  });
  return { child, url };
}

async function call(url, name) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': REVISION, 'Mcp-Method': 'tools/call', 'Mcp-Name': name,
    },
    body: JSON.stringify({
      jsonrpc: '2.0', id: 1, method: 'tools/call',
      params: {
        name,
        arguments: {},
        _meta: {
          'io.modelcontextprotocol/protocolVersion': REVISION,
          'io.modelcontextprotocol/clientInfo': { name: 'other-client', version: '7' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    }),
  });
  return response.text();
}

async function startPrometheus(folder, target) {
  const port = await freePort();
  const config = path.join(folder, 'prometheus.yml');
  await writeFile(config, `global: { scrape_interval: 1s }
scrape_configs:
  - job_name: sabir
    static_configs: [{ targets: ["${target}"] }]
`);
  const child = spawn('prometheus', [`--config.file=${config}`, `--storage.tsdb.path=${folder}/tsdb`,
    `--web.listen-address=127.0.0.1:${port}`], { stdio: 'ignore' });
  return { child, api: `http://127.0.0.1:${port}/api/v1/query` };
}

/** What a query gives, once Prometheus answers. */
async function ask(api, query) {
  const response = await fetch(`${api}?${new URLSearchParams({ query })}`).catch(() => null);
  if (!response) return null;
  const answer = await response.json();
  assert.equal(answer.status, 'success', `${query}: ${JSON.stringify(answer)}`);
  return answer.data.result;
}

const dashboard = JSON.parse(readFileSync(path.join(ROOT, 'docs', 'grafana.json'), 'utf8'));
const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr
  .replaceAll('$job', '.*').replaceAll('$__rate_interval', '1m')));
assert.ok(queries.length > 20);
const folder = await mkdtemp(path.join(SCRATCH, 'dashboard-'));
const sabir = await startSabir(folder);
const prometheus = await startPrometheus(folder, sabir.url.host);
try {
  const until = Date.now() + PATIENCE;
  let open = queries;
  while (open.length) {
    assert.ok(Date.now() < until, `no answer to:\n${open.join('\n')}`);
    await call(sabir.url, 'old_echo');
    await call(sabir.url, 'old_fail');
    await new Promise((resolve) => { setTimeout(resolve, 500); });
    const answers = await Promise.all(open.map((query) => ask(prometheus.api, query)));
    open = open.filter((_, nth) => !answers[nth]?.length);
  }
  console.log(`the dashboard: all ${queries.length} queries have an answer`);
} finally {
  const running = [sabir.child, prometheus.child].filter((child) => child.exitCode === null);
  const ended = running.map((child) => once(child, 'exit'));
  running.forEach((child) => child.kill());
  await Promise.all(ended);
}
