// The console: which screen is shown.

import { callsScreen } from './calls.js';
import { clientsScreen } from './clients.js';
import { h, show, table } from './dom.js';
import { Client } from './mcp.js';
import { Refused, Server, setToken, takeToken } from './server.js';
import { searchScreen, toolsScreen } from './tools.js';

const main = document.getElementById('main');
const status = document.getElementById('status');

async function begin() {
  const token = takeToken();
  if (!token) return askForToken('');
  const server = new Server(token);
  try {
    run(server, await server.get('state'));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    askForToken('That token is not the one of this launch.');
  }
}

function askForToken(problem) {
  const input = h('input', { id: 'token', type: 'password', required: true, autocomplete: 'off' });
  show(main, h('h2', {}, 'Open the console'),
    h('p', {}, 'Open the address that sabir serve printed, or paste its token.'),
    problem ? h('p', { role: 'alert', class: 'bad' }, problem) : [],
    h('form', {
      class: 'bar',
      onsubmit(event) {
        event.preventDefault();
        setToken(input.value.trim());
        location.reload();
      },
    }, h('label', { for: 'token' }, 'Token'), input, h('button', { type: 'submit', class: 'main' }, 'Open')));
}

function run(server, first) {
  let state = first;
  const client = new Client(state.endpoint, state.newest, server.token);
  const screens = {
    calls: ['Calls', () => callsScreen(server, () => state)],
    sources: ['Sources', () => sourcesScreen(() => state)],
    tools: ['Tools', () => toolsScreen(server, client)],
    search: ['Search', () => searchScreen(server, client)],
    clients: ['Clients', () => clientsScreen(server, () => state)],
    connect: ['Connect', () => connectScreen(state)],
  };
  const names = Object.keys(screens);
  let screen;

  function go() {
    const wanted = location.hash.slice(1);
    const name = screens[wanted] ? wanted : 'calls';
    screen?.leave();
    screen = screens[name][1]();
    show(main, screen.element);
    show(document.getElementById('screens'), names.map((other, nth) => h('a', {
      href: `#${other}`, 'aria-current': other === name ? 'page' : null, title: `Key ${nth + 1}`,
    }, screens[other][0])));
    document.title = `${screens[name][0]} – ${state.server.name}`;
    screen.update();
  }

  let isDue = false;
  function changed() {
    // Many changes are drawn once.
    if (isDue) return;
    isDue = true;
    setTimeout(() => requestAnimationFrame(() => {
      isDue = false;
      show(status, server.isLive ? 'live' : 'not connected');
      status.className = server.isLive ? 'state ok' : 'state bad';
      screen.update();
    }), 200);
  }

  show(document.getElementById('server'), state.server.name);
  addEventListener('hashchange', go);
  // The hash names the screen, so this link must not change it.
  document.querySelector('a.skip').addEventListener('click', (event) => {
    event.preventDefault();
    main.focus();
  });
  addEventListener('keydown', (event) => {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? '');
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const nth = Number(event.key) - 1;
    if (names[nth]) location.hash = names[nth];
    if (event.key === '/') {
      event.preventDefault();
      main.querySelector('input[type=search]')?.focus();
    }
  });
  go();
  server.follow(changed);
  setInterval(async () => {
    try {
      const asked = performance.now();
      state = { ...await server.get('state'), asked };
    } catch {
      return; // `live` says that the server has gone.
    }
    changed();
  }, 3000);
}

function sourcesScreen(state) {
  const list = h('div');
  let shown = '';
  const update = () => {
    const { sources } = state();
    const key = JSON.stringify(sources);
    if (key === shown) return;
    shown = key;
    show(list, sources.length ? sources.map(source) : h('p', {}, 'Nothing is served.'));
  };
  return { element: h('div', {}, h('h2', {}, 'Sources'), list), update, leave() {} };
}

function source({ name, state, reason, summary, condition, problems }) {
  const kind = { ready: 'ok', failed: 'bad' }[state] ?? 'open';
  const shown = problems.slice(0, 50);
  return h('section', { class: 'card' },
    h('h3', {}, name, ' ', h('span', { class: `state ${kind}` }, state)),
    summary ? h('p', {}, summary) : null,
    condition ? h('p', { class: 'hint' }, condition) : null,
    reason ? h('p', { class: 'bad' }, reason) : null,
    problems.length ? h('details', {},
      h('summary', {}, problems.length === 1 ? '1 problem' : `${problems.length} problems`),
      h('ul', {}, shown.map((problem) => h('li', {}, problem)),
        problems.length > 50 ? h('li', {}, `and ${problems.length - 50} more`) : null)) : null);
}

function connectScreen({ endpoint, url: other, connect }) {
  const url = other ?? new URL(endpoint, location.href).href;
  const rows = connect.map(([name, command]) => {
    const text = command.replaceAll('{url}', url);
    const copy = h('button', {
      'aria-label': `Copy the command for ${name}`,
      async onclick() {
        await navigator.clipboard.writeText(text);
        show(copy, 'Copied');
      },
    }, 'Copy');
    return [name, h('code', {}, text), copy];
  });
  return {
    element: h('div', {}, h('h2', {}, 'Connect'),
      connect.length
        ? h('p', {}, 'The endpoint is ', h('code', {}, url), ', for every client that speaks HTTP.')
        : h('p', {}, 'This server has no address for HTTP clients.'),
      table('How to connect each client', ['client', 'command', ''], rows)),
    update() {},
    leave() {},
  };
}

begin();
