// The clients that have called, and why one of them does not see a tool.

import { h, show, table, time } from './dom.js';

export function clientsScreen(server, state) {
  const list = h('div');
  const why = whyForm(server);
  let shown = '';
  const update = () => {
    const clients = known(server.calls.values());
    const rows = clients.map(({ call, count, errors, last }) => [
      call.client ?? 'not named', call.clientVersion ?? '–', call.caller, call.revision, call.era,
      call.transport, String(count), String(errors), time(last)]);
    const { http } = state();
    const open = http ? `${http.connections} connections, ${http.sessions} sessions, ${http.streams} streams` : '';
    const key = JSON.stringify([rows, open]);
    if (key === shown) return;
    shown = key;
    why.update(clients);
    const headings = ['client', 'version', 'caller', 'revision', 'era', 'by', 'requests', 'errors', 'last seen'];
    show(list, h('p', {}, open), rows.length
      ? table('Clients, by the requests that are remembered', headings, rows)
      : h('p', {}, 'No client has made a request yet.'));
  };
  return { element: h('div', {}, h('h2', {}, 'Clients'), list, why.element), update, leave() {} };
}

/** The clients of these calls, those that were seen last first. */
function known(calls) {
  const clients = new Map();
  for (const call of calls) {
    const key = [call.client, call.clientVersion, call.caller, call.revision, call.transport].join('\n');
    const client = clients.get(key) ?? { key, count: 0, errors: 0 };
    // The last call is remembered longest.
    Object.assign(client, { call, last: call.began });
    client.count += 1;
    client.errors += call.isError ? 1 : 0;
    clients.set(key, client);
  }
  return [...clients.values()].sort((a, b) => b.last - a.last);
}

/** Why does a client not see a tool? */
function whyForm(server) {
  const who = h('select', { id: 'why-client' });
  const tool = h('input', { type: 'search', id: 'why-tool', required: true });
  const answer = h('div', { 'aria-live': 'polite' });
  let clients = [];
  const form = h('form', {
    class: 'bar',
    async onsubmit(event) {
      event.preventDefault();
      const call = clients.find(({ key }) => key === who.value)?.call;
      const query = new URLSearchParams({ tool: tool.value.trim(), ...(call ? { call: call.number } : {}) });
      try {
        // The server does not read `+` as a space.
        show(answer, told(await server.get(`why?${query.toString().replaceAll('+', '%20')}`)));
      } catch (error) {
        show(answer, h('p', { role: 'alert', class: 'bad' }, error.message));
      }
    },
  }, h('label', { for: 'why-client' }, 'Does'), who, h('label', { for: 'why-tool' }, 'see the tool'), tool,
  h('button', { type: 'submit', class: 'main' }, 'Explain'));
  const update = (all) => {
    clients = all;
    const chosen = who.value;
    show(who, h('option', { value: '' }, 'the user of this machine'), clients.map(({ key, call }) =>
      h('option', { value: key }, `${call.client ?? 'not named'} (${call.caller}, ${call.revision})`)));
    who.value = clients.some(({ key }) => key === chosen) ? chosen : '';
  };
  update([]);
  return { element: h('section', { 'aria-label': 'Why' }, h('h3', {}, 'Why a client does not see a tool'), form, answer), update };
}

function told({ listed, reasons, last }) {
  const had = { true: 'had it', false: 'did not have it' }[last?.had];
  const got = last && `the list that it got at ${time(last.at)} ${had ?? 'is not remembered as a whole'}`;
  return [
    h('p', { class: `state ${listed ? 'ok' : 'bad'}` }, listed ? 'It is in the list of tools.' : 'It is not in the list of tools.'),
    h('ul', {}, reasons.map((reason) => h('li', {}, reason)), got ? h('li', {}, got) : null),
  ];
}
