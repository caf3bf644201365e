// Drives the console of the real binary in a real Chromium: every screen, questions, hostile text,
// foreign pages, and accessibility.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(`${process.env.PLACE}/`);
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const { CHROMIUM, FIXTURE, SABIR, SCRATCH, SHOTS } = process.env;

// Nothing here takes long; a loaded machine may.
const PATIENCE = 60_000;

const REVISION = '2026-07-28';
// A header that must not be shown.
const SECRET = 'hidden-4711';
const HTML = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';

const file = (web) => `
[server]
name = "demo"

[[articles]]
path = "articles"

[[command]]
name = "greet"
description = "Say hello"
run = ["echo", "hello {name}"]
input = { name = "string" }

[[command]]
name = "hostile"
description = '''${HTML}'''
run = ["printf", '%b', '''${HTML}\\033[31mred''']

[[command]]
name = "large"
run = ["python3", "-c", "print('y' * 5000000)"]
max_output = "8MB"

[[upstream]]
name = "old"
run = ["${FIXTURE}", "stdio", "2025-06-18"]

[[upstream]]
name = "new"
run = ["${FIXTURE}", "stdio", "${REVISION}"]
tools = { deny = ["grow"] }

[[upstream]]
name = "web"
url = "${web}"
headers = { x-team = "not for others" }
`;

/** An upstream over HTTP, of the last legacy revision. */
async function startUpstream() {
  const child = spawn(FIXTURE, ['http', '2025-11-25'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [address] = await once(child.stdout, 'data');
  return { child, address: String(address).trim() };
}

async function start(upstream) {
  const folder = await mkdtemp(path.join(SCRATCH, 'console-'));
  await mkdir(path.join(folder, 'articles'));
  await writeFile(path.join(folder, 'articles', 'tea.md'), '# Tea\n\nGreen tea is steeped at eighty degrees.\n');
  await writeFile(path.join(folder, 'sabir.toml'), file(upstream.address));
  const child = spawn(SABIR, ['serve', '--http', '127.0.0.1:0', '--console', 'always'], {
    cwd: folder, stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  const console = await new Promise((resolve, reject) => {
    child.stderr.on('data', (piece) => {
      said += piece;
      const found = /console: (http:\/\/\S+)/.exec(said);
      if (found) resolve(new URL(found[1]));
    });
    child.on('exit', () => reject(new Error(`sabir has exited: ${said}`)));
  });
  const token = /^#token=(.+)$/.exec(console.hash)[1];
  return { child, console, token, said: () => said, greeted: 0 };
}

/** A raw request, whose headers a browser would not let us choose. */
function request({ console }, target, headers = {}, method = 'GET') {
  return new Promise((resolve, reject) => {
    const options = { host: console.hostname, port: console.port, path: target, headers, method };
    http.request(options, (response) => {
      let text = '';
      response.on('data', (piece) => { text += piece; });
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
    }).on('error', reject).end();
  });
}

/** A call of a tool by another client. */
function call(server, name, values) {
  return post(server, 'tools/call', { name, arguments: values }, { 'Mcp-Name': name });
}

/** A request of another client. */
async function post({ console }, method, params, headers = {}) {
  const response = await fetch(new URL('/mcp', console), {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': REVISION, 'Mcp-Method': method, 'X-Api-Key': SECRET, ...headers,
    },
    body: JSON.stringify({
      jsonrpc: '2.0', id: 1, method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': REVISION,
          'io.modelcontextprotocol/clientInfo': { name: 'other-client', version: '7' },
          'io.modelcontextprotocol/clientCapabilities': {},
          progressToken: 1,
        },
      },
    }),
  });
  return response.text();
}

async function checkGuards(server) {
  const state = '/console/api/state';
  const right = { Authorization: `Bearer ${server.token}` };
  const status = async (headers, target = state) => (await request(server, target, headers)).status;
  assert.equal(await status(right), 200);
  assert.equal(await status({}), 401);
  assert.equal(await status({ Authorization: `Bearer ${server.token}x` }), 401);
  // A name that was rebound to this machine, and pages of other origins, also of this machine.
  assert.equal(await status({ ...right, Host: 'evil.example' }), 403);
  assert.equal(await status({ Host: 'evil.example' }, '/'), 403);
  assert.equal(await status({ ...right, Origin: 'http://evil.example' }), 403);
  assert.equal(await status({ ...right, Origin: 'http://127.0.0.1:1' }), 403);
  assert.equal(await status({ ...right, 'Sec-Fetch-Site': 'same-site' }), 403);
  const page = await request(server, '/', { Origin: `http://127.0.0.1:${server.console.port}` });
  assert.equal(page.status, 200);
  assert.equal(page.headers['access-control-allow-origin'], undefined);
  assert.match(page.headers['content-security-policy'], /default-src 'none'; script-src 'self';/);
  assert.ok(!page.text.includes(server.token));
  assert.equal((await request(server, '/console/nothing')).status, 404);
  // Actions need a POST, with the same checks.
  const record = '/console/api/record-start';
  const posted = async (headers) => (await request(server, record, headers, 'POST')).status;
  assert.equal(await status(right, record), 405);
  assert.equal(await posted({}), 401);
  assert.equal(await posted({ ...right, Origin: 'http://127.0.0.1:1' }), 403);
  assert.equal((await request(server, state, right, 'POST')).status, 405);
}

async function checkMetrics(server) {
  const { text, headers, status } = await request(server, '/metrics');
  assert.equal(status, 200);
  assert.match(headers['content-type'], /^text\/plain; version=0\.0\.4/);
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  assert.equal(`${checked.stdout}${checked.stderr}`, '');
  assert.equal(checked.status, 0);
  for (const part of [
    'mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",gen_ai_operation_name="execute_tool",gen_ai_tool_name="greet",mcp_protocol_version="2026-07-28",network_transport="tcp",network_protocol_name="http"} ' + `${server.greeted}\n`,
    'gen_ai_tool_name="new_fail",error_type="tool_error"',
    'gen_ai_tool_name="old_fail",error_type="tool_error"',
    'sabir_source_ready{source=', 'sabir_catalog_items{kind="tool"}', 'sabir_http_connections ',
  ]) assert.ok(text.includes(part), `${part} in\n${text}`);
  const ready = await request(server, '/readyz');
  assert.deepEqual([ready.status, ready.text], [200, '{"status":"ready"}']);
}

/** A page of another origin, with the token, gets nothing. */
async function checkForeignPage(server, browser) {
  const other = http.createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end('<title>other</title>');
  });
  await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${other.address().port}/`);
  const read = (target, headers) => page.evaluate(async ([address, sent]) => {
    try {
      return (await fetch(address, { headers: sent })).status;
    } catch {
      return 'refused';
    }
  }, [new URL(target, server.console).href.split('#')[0], headers]);
  assert.equal(await read('/', {}), 'refused');
  assert.equal(await read('/metrics', {}), 'refused');
  assert.equal(await read('/console/api/state', { Authorization: `Bearer ${server.token}` }), 'refused');
  await page.close();
  other.close();
}

async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
  });
  assert.deepEqual(found, [], what);
}

async function go(page, name) {
  await page.getByRole('link', { name, exact: true }).click();
  await page.getByRole('heading', { level: 2, name }).waitFor();
}

async function chooseTool(page, name) {
  await page.locator(`[data-tool="${name}"]`).click();
  await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
}

async function callTool(page, name) {
  await chooseTool(page, name);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
}

/** Measures the frames of a page from now on, and counts the rows that are put into its table. */
function meter(page) {
  return page.evaluate(() => {
    window.longest = 0;
    window.made = 0;
    let last = performance.now();
    const frame = (now) => {
      window.longest = Math.max(window.longest, now - last);
      last = now;
      window.meter = requestAnimationFrame(frame);
    };
    cancelAnimationFrame(window.meter);
    window.meter = requestAnimationFrame(frame);
    window.rows?.disconnect();
    window.rows = new MutationObserver((changes) => {
      const added = changes.flatMap(({ addedNodes }) => [...addedNodes]);
      window.made += added.filter(({ tagName }) => tagName === 'TR').length;
    });
    window.rows.observe(document.body, { childList: true, subtree: true });
  });
}

/** 1,000 calls of another client. Gives the longest frame meanwhile, and that of an empty page. */
async function thousand(server, page, empty) {
  await Promise.all([page, empty].map(meter));
  const first = server.greeted;
  for (server.greeted = first; server.greeted < first + 1000; server.greeted += 10) {
    const some = Array.from({ length: 10 }, (_, nth) => call(server, 'greet', { name: `n${server.greeted + nth}` }));
    await Promise.all(some);
  }
  await page.getByText(`The newest 50 of ${server.greeted} requests`).waitFor();
  const made = await page.evaluate(() => window.made);
  // A row is made when its call begins and when it ends, however busy the machine is.
  assert.ok(made <= 2 * 1000 + 50, `${made} rows were made for 1,000 calls`);
  return Promise.all([page, empty].map((one) => one.evaluate(() => window.longest)));
}

async function checkCalls(server, page) {
  const empty = await page.context().browser().newPage();
  // Other programs delay frames, too: one of three attempts must succeed.
  const late = [];
  do {
    const [longest, idle] = await thousand(server, page, empty);
    console.log(`1,000 calls: the longest frame took ${Math.round(longest)} ms (of an empty page ${Math.round(idle)} ms)`);
    late.push(longest - idle);
  } while (Math.min(...late) > 100 && late.length < 3);
  assert.ok(Math.min(...late) <= 100, `the longest frames took ${late.map(Math.round)} ms more than those of an empty page`);
  await empty.close();
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText(`The newest 250 of ${server.greeted} requests`).waitFor();
  assert.equal(await page.locator('[data-call]').count(), 250);
  for (const name of ['new_fail', 'old_fail', 'new_progress', 'old_progress']) await call(server, name, {});
  await page.getByLabel('Filter').fill('old_fail');
  const row = page.getByRole('button', { name: 'tools/call old_fail' });
  await row.click();
  const details = page.getByRole('region', { name: 'One call' });
  await details.getByText('other-client 7').waitFor();
  assert.match(await details.getByRole('region', { name: 'Response' }).innerText(), /on purpose/);
  await checkRelayed(details, 'old', 'fail');
  await details.getByText('revision 2025-06-18: tool_error').waitFor();
  assert.match(await details.getByRole('region', { name: 'Standard error' }).innerText(), /old: it fails on purpose/);
  const headers = await details.getByRole('region', { name: 'Headers' }).innerText();
  assert.match(headers, /"x-api-key": "\[masked\]"/);
  assert.ok(!(await page.content()).includes(SECRET));
  await page.keyboard.press('Escape');
  await details.waitFor({ state: 'hidden' });
  await page.getByLabel('Filter').fill('new_progress');
  await page.getByRole('button', { name: 'tools/call new_progress' }).click();
  await details.getByText('progress 2 of 3: step 2').waitFor();
  await page.getByLabel('Filter').fill('');
}

/** Both sides of a relay, and what was translated between them. */
async function checkRelayed(details, upstream, tool) {
  const region = (name) => details.getByRole('region', { name, exact: true }).innerText();
  await details.getByText(`name: "${upstream}_${tool}" → "${tool}"`).waitFor();
  assert.match(await region('Request'), new RegExp(`"name": "${upstream}_${tool}"`));
  assert.match(await region(`to ${upstream}`), new RegExp(`"name": "${tool}"`));
  assert.match(await region(`from ${upstream}`), /"result"/);
}

/** Holds the next state that the page asks for, as it is now. */
async function holdState(page) {
  const address = '**/console/api/state';
  let free;
  const freed = new Promise((resolve) => { free = resolve; });
  let told;
  const held = new Promise((resolve) => {
    page.route(address, async (route) => {
      const response = await route.fetch();
      told = freed.then(() => route.fulfill({ response }));
      resolve();
    }, { times: 1 });
  });
  await held;
  return {
    async release() {
      free();
      await told;
      await page.evaluate(() => new Promise((resolve) => { setTimeout(resolve, 500); }));
    },
  };
}

/** A recording that is begun and ended in the page, and opened in it. */
async function checkRecording(server, page) {
  await go(page, 'Calls');
  // The state from before the click arrives after its answer, and does not undo it.
  const state = await holdState(page);
  await page.getByRole('button', { name: 'Record', exact: true }).click();
  await page.getByText('Recording to').waitFor();
  await state.release();
  assert.equal(await page.getByRole('button', { name: 'Stop recording' }).count(), 1);
  for (const name of ['web_echo', 'old_fail']) await call(server, name, { word: 'sabir' });
  await page.getByRole('button', { name: 'Stop recording' }).click();
  const [, path] = /Recorded to (\S+)/.exec(await page.getByText('Recorded to').innerText());
  await call(server, 'old_echo', { word: 'too late' });
  const text = readFileSync(path, 'utf8');
  assert.ok(text.includes('web_echo') && !text.includes('too late') && !text.includes(SECRET));
  assert.ok(!text.includes('not for others'), 'a secret header of an upstream');
  await page.locator('#recording').setInputFiles(path);
  await page.getByText(/recording-.*: demo, sabir/).waitFor();
  assert.equal(await page.locator('[data-call]').count(), 2);
  const details = page.getByRole('region', { name: 'One call' });
  await page.getByRole('button', { name: 'tools/call old_fail' }).click();
  await checkRelayed(details, 'old', 'fail');
  assert.match(await details.getByRole('region', { name: 'Standard error' }).innerText(), /it fails on purpose/);
  await page.getByRole('button', { name: 'tools/call web_echo' }).click();
  await checkRelayed(details, 'web', 'echo');
  const heads = await details.getByRole('region', { name: 'headers of web' }).innerText();
  assert.match(heads, /"status": 200/);
  assert.match(heads, /"x-team": "\[masked\]"/);
  await page.getByRole('button', { name: 'Back to the server' }).click();
}

/** Why a client does not see a tool. */
async function checkWhy(server, page) {
  await post(server, 'tools/list', {});
  await go(page, 'Clients');
  await page.locator('#why-client option', { hasText: 'other-client' }).waitFor({ state: 'attached' });
  await page.locator('#why-client').selectOption({ label: `other-client (anonymous, ${REVISION})` });
  const ask = async (tool) => {
    await page.locator('#why-tool').fill(tool);
    await page.getByRole('button', { name: 'Explain' }).click();
  };
  await ask('new_grow');
  await page.getByText('upstream `new`: it has a tool `grow`, but a pattern of `deny` excludes it').waitFor();
  await page.getByText(/the list that it got at .* did not have it/).waitFor();
  await ask('greet');
  await page.getByText('It is in the list of tools.').waitFor();
  await page.getByText(/the list that it got at .* had it/).waitFor();
}

async function checkTools(server, page) {
  await go(page, 'Tools');
  for (const upstream of ['new', 'old']) {
    await callTool(page, `${upstream}_elicit`);
    const question = page.locator('form.question');
    await question.getByText('Who?').waitFor();
    await question.getByLabel('name').fill('octocat');
    await question.getByRole('button', { name: 'Answer' }).click();
    await page.getByText('octocat', { exact: false }).waitFor();
    await callTool(page, `${upstream}_wait`);
    await page.getByText('1', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByText('Cancelled after').waitFor();
  }
  await chooseTool(page, 'greet');
  await page.getByLabel('name *').fill('Ann');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('hello Ann').waitFor();
  await callTool(page, 'hostile');
  await page.getByText('Done after').waitFor();
  assert.ok((await page.locator('main').innerText()).includes('onerror="window.hacked=1"'));
  assert.equal(await page.locator('main img, main script').count(), 0);
  await callTool(page, 'large');
  await page.getByText('… (4.8 MB in all)').waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await page.getByLabel('Find').fill('greet');
  assert.equal(await page.locator('[data-tool]').count(), 1);
}

async function checkOthers(page) {
  await page.locator('h2').click();
  await page.keyboard.press('2');
  await page.getByRole('heading', { level: 2, name: 'Sources' }).waitFor();
  assert.equal(await page.locator('.card .state.ok').count(), await page.locator('.card').count());
  await go(page, 'Search');
  await page.getByLabel('Words').fill('eighty degrees');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByRole('region', { name: 'Text' }).first().getByText('Tea').first().waitFor();
  await go(page, 'Clients');
  await page.getByRole('cell', { name: 'other-client' }).waitFor();
  await page.getByRole('cell', { name: 'sabir-console' }).waitFor();
  await go(page, 'Connect');
  await page.getByText('sabir install cursor http://127.0.0.1:').waitFor();
}

/** Each screen, dark and light, narrow and wide: nothing overflows, and axe finds nothing. */
async function checkLooks(page) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const width of [400, 1600]) {
      await page.setViewportSize({ width, height: 900 });
      for (const name of ['Calls', 'Sources', 'Tools', 'Search', 'Clients', 'Connect']) {
        await go(page, name);
        if (name === 'Tools') await chooseTool(page, 'greet');
        if (name === 'Calls') await page.getByRole('button', { name: 'tools/call greet' }).first().click();
        await page.waitForLoadState();
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${name} at ${width}: ${overflow} px too wide`);
        await accessible(page, `${name} ${colorScheme} ${width}`);
        if (SHOTS) {
          const file = `${SHOTS}/${name.toLowerCase()}-${colorScheme}-${width}.png`;
          await page.screenshot({ path: file });
        }
      }
    }
  }
}

const upstream = await startUpstream();
const server = await start(upstream);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
try {
  await checkGuards(server);
  await checkForeignPage(server, browser);
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  page.setDefaultTimeout(PATIENCE);
  const problems = [];
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.goto(server.console.href);
  await page.getByText('live', { exact: true }).waitFor();
  assert.ok(!page.url().includes(server.token), 'the token stays in the address');
  await checkCalls(server, page);
  await checkMetrics(server);
  await checkTools(server, page);
  await checkOthers(page);
  await checkRecording(server, page);
  await checkWhy(server, page);
  await checkLooks(page);
  assert.deepEqual(problems, []);
  const stopped = new Promise((resolve) => { server.child.on('exit', (code) => resolve(code)); });
  server.child.kill('SIGTERM');
  assert.equal(await stopped, 0, server.said());
  await page.getByText('not connected').waitFor();
  console.log('the console: every screen, questions, hostile text, foreign pages, WCAG AA');
} finally {
  await browser.close();
  server.child.kill();
  upstream.child.kill();
}
