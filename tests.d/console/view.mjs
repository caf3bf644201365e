// Shows views of tools in a real Chromium, as a host does: in a sandbox, with messages of the window.
// The tools are those of an upstream, so that the views have crossed a relay.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(`${process.env.PLACE}/`);
const { chromium } = require('playwright-core');
const { CHROMIUM, SABIR, SCRATCH } = process.env;

// Nothing here takes long; a loaded machine may.
const PATIENCE = 60_000;
const REVISION = '2026-07-28';
const UI = 'io.modelcontextprotocol/ui';
const VIEW = 'text/html;profile=mcp-app';

const INNER = `
[[articles]]
path = "articles"
structured = true

[[app]]
tool = "search_articles"
built_in = true

[[command]]
name = "sizes"
description = "Lists sizes"
run = ["printf", 'name\\tsize\\nb\\t9\\na\\t10\\n<b>c</b>\\t2\\n']

[[app]]
tool = "sizes"
built_in = true

[[command]]
name = "count"
description = "Counts"
run = ["echo", "four"]

[[app]]
tool = "count"
file = "own.html"
`;

// A page that was written for the upstream alone: it knows no prefix.
const OWN = `<!DOCTYPE html>
<title>Own</title>
<p id="said">waiting</p>
<script>
const ask = (id, method, params) => parent.postMessage({ jsonrpc: '2.0', id, method, params }, '*');
addEventListener('message', ({ data }) => {
  if (data.id === 1) ask(2, 'tools/call', { name: 'count', arguments: {} });
  if (data.id === 2) document.getElementById('said').textContent = JSON.stringify(data.result || data.error);
});
ask(1, 'ui/initialize', { appInfo: { name: 'own', version: '1' }, appCapabilities: {}, protocolVersion: '2026-01-26' });
</script>`;

// A minimal host.
const HOST = `<!DOCTYPE html><title>Host</title><script>
window.show = (html, result) => {
  document.body.replaceChildren();
  window.sizes = [];
  const frame = document.createElement('iframe');
  frame.sandbox = 'allow-scripts';
  frame.srcdoc = html;
  const tell = (message) => frame.contentWindow.postMessage({ jsonrpc: '2.0', ...message }, '*');
  window.onmessage = async ({ data, source }) => {
    if (source !== frame.contentWindow) return;
    const { id, method, params } = data;
    if (method === 'ui/initialize') {
      const hostContext = { theme: 'dark', styles: { variables: { '--color-text-primary': 'rgb(1, 2, 3)' } } };
      const hostInfo = { name: 'host', version: '1' };
      tell({ id, result: { protocolVersion: params.protocolVersion, hostCapabilities: {}, hostInfo, hostContext } });
    } else if (method === 'ui/notifications/initialized') {
      tell({ method: 'ui/notifications/tool-input', params: { arguments: {} } });
      tell({ method: 'ui/notifications/tool-result', params: result });
    } else if (method === 'ui/notifications/size-changed') {
      window.sizes.push(params);
    } else if (method === 'tools/call' || method === 'resources/read') {
      tell({ id, ...await window.forward(method, params) });
    }
  };
  document.body.append(frame);
};
</script><body>`;

async function start() {
  const folder = await mkdtemp(path.join(SCRATCH, 'view-'));
  await mkdir(path.join(folder, 'articles'));
  const article = '# Tea\n\nGreen tea is steeped at eighty degrees.\n';
  await writeFile(path.join(folder, 'articles', 'tea.md'), article);
  await writeFile(path.join(folder, 'inner.toml'), INNER);
  await writeFile(path.join(folder, 'own.html'), OWN);
  const run = JSON.stringify([SABIR, 'serve', 'inner.toml', '--stdio']);
  await writeFile(path.join(folder, 'sabir.toml'), `[[upstream]]\nname = "inner"\nrun = ${run}\n`);
  const child = spawn(SABIR, ['serve', '--http', '127.0.0.1:0'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  const url = await new Promise((resolve, reject) => {
    child.stderr.on('data', (piece) => {
      said += piece;
      const found = /on (http:\/\/\S+)/.exec(said);
      if (found) resolve(found[1]);
    });
    child.on('exit', () => reject(new Error(`sabir has exited: ${said}`)));
  });
  return { child, url };
}

/** A request of the host to the server. */
async function ask(url, method, params) {
  const name = params.name ?? params.uri;
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': REVISION, 'Mcp-Method': method, ...(name && { 'Mcp-Name': name }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0', id: 1, method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': REVISION,
          'io.modelcontextprotocol/clientCapabilities': { extensions: { [UI]: { mimeTypes: [VIEW] } } },
        },
      },
    }),
  });
  const { result, error } = await response.json();
  return { result, error };
}

async function tools(url) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const { result } = await ask(url, 'tools/list', {});
    if (result.tools.some((tool) => tool.name === 'inner_sizes')) return result.tools;
    assert(Date.now() < end, 'the tools of the upstream are never listed');
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
}

const server = await start();
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  const problems = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.exposeFunction('forward', (method, params) => ask(server.url, method, params));
  await page.setContent(HOST);
  const listed = await tools(server.url);

  /** Calls a tool and shows its view. */
  const show = async (name, values) => {
    const uri = listed.find((tool) => tool.name === name)._meta.ui.resourceUri;
    const { result: read } = await ask(server.url, 'resources/read', { uri });
    assert.equal(read.contents[0].mimeType, VIEW);
    const { result } = await ask(server.url, 'tools/call', { name, arguments: values });
    assert(result.content.length > 0, 'there is a text for clients without views');
    await page.evaluate(([html, shown]) => window.show(html, shown), [read.contents[0].text, result]);
    return page.frameLocator('iframe');
  };

  const table = await show('inner_sizes', {});
  await table.locator('td').first().waitFor();
  const cells = () => table.locator('tbody tr').allInnerTexts();
  assert.deepEqual(await table.locator('th').allInnerTexts(), ['name', 'size']);
  assert.deepEqual(await cells(), ['b\t9', 'a\t10', '<b>c</b>\t2'], 'nothing is read as HTML');
  await table.locator('th', { hasText: 'size' }).click();
  assert.deepEqual(await cells(), ['<b>c</b>\t2', 'b\t9', 'a\t10'], 'sorted as numbers');
  await table.locator('th', { hasText: 'size' }).click();
  assert.deepEqual(await cells(), ['a\t10', 'b\t9', '<b>c</b>\t2'], 'and the other way around');
  const color = await table.locator('body').evaluate((body) => getComputedStyle(body).color);
  assert.equal(color, 'rgb(1, 2, 3)', 'the colors are those of the host');
  assert((await page.evaluate(() => window.sizes)).length > 0, 'the host knows how large it is');
  console.log('view: a table, sorted by a click');

  const found = await show('inner_search_articles', { query: 'tea' });
  await found.locator('button', { hasText: 'Tea' }).click();
  await found.locator('pre', { hasText: 'eighty degrees' }).waitFor();
  console.log('view: search results, and the article behind one');

  const own = await show('inner_count', {});
  await own.locator('#said', { hasText: 'four' }).waitFor();
  console.log('view: the page of an upstream calls its tool by its own name');
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
  server.child.kill();
}
