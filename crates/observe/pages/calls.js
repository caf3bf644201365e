// The calls: a chart, a table, and one call opened.

import { Chart } from './chart.js';
import { code, duration, h, show, size, table, time } from './dom.js';

const ROWS = 200;

export function callsScreen(server) {
  const filter = h('input', {
    type: 'search', id: 'filter', placeholder: 'tool, client, caller, outcome …', oninput: () => draw(),
  });
  const onlyErrors = h('input', { type: 'checkbox', id: 'errors', onchange: () => draw() });
  const canvas = h('canvas', {
    tabindex: '0', role: 'img',
    'aria-label': 'Calls over time. Plus and minus zoom, arrow keys move, Home shows the present.',
  });
  const list = h('div', { class: 'calls' });
  const details = h('section', { class: 'details', 'aria-label': 'One call', hidden: true });
  const chart = new Chart(canvas, open);
  let opened = null;
  let shown = [];

  function matching() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (call) => {
      if (onlyErrors.checked && !call.isError) return false;
      const text = [call.method, call.name, call.client, call.caller, call.outcome, call.revision,
        call.transport].join(' ').toLowerCase();
      return words.every((word) => text.includes(word));
    };
    return [...server.calls.values()].filter(fits);
  }

  function row(call) {
    const name = call.name ? `${call.method} ${call.name}` : call.method;
    const state = call.duration === null ? 'open' : call.isError ? 'bad' : 'ok';
    return [
      time(call.began),
      h('button', { class: 'link', 'data-call': String(call.number), onclick: () => open(call.number) }, name),
      h('span', { class: `state ${state}` }, call.outcome ?? 'running'),
      duration(call.duration),
      size(call.bytes),
      call.client ?? '–',
      call.caller,
      call.revision,
      call.transport,
    ];
  }

  function draw() {
    const calls = matching();
    chart.draw(calls);
    const newest = calls.slice(-ROWS).reverse();
    const key = newest.map((call) => `${call.number}:${call.outcome}`).join();
    if (key === shown.key) return;
    shown = { key };
    const focused = document.activeElement?.dataset?.call;
    const headings = ['time', 'request', 'outcome', 'took', 'result', 'client', 'caller', 'revision', 'by'];
    const caption = calls.length > ROWS
      ? `The newest ${ROWS} of ${calls.length} requests`
      : `${calls.length} requests`;
    show(list, calls.length
      ? table(caption, headings, newest.map(row))
      : h('p', {}, 'No requests yet. Connect a client, or call a tool here.'));
    if (focused) list.querySelector(`[data-call="${focused}"]`)?.focus();
  }

  async function open(number) {
    opened = number;
    details.hidden = false;
    try {
      const call = await server.get(`calls/${number}`);
      if (opened !== number) return;
      show(details, opening(call, close));
    } catch (error) {
      show(details, h('p', { role: 'alert' }, error.message));
    }
    details.scrollIntoView({ block: 'nearest' });
    details.querySelector('button')?.focus();
  }

  function close() {
    const number = opened;
    opened = null;
    details.hidden = true;
    list.querySelector(`[data-call="${number}"]`)?.focus();
  }

  const screen = h('div', { onkeydown: (event) => event.key === 'Escape' && opened && close() },
    h('h2', {}, 'Calls'),
    h('div', { class: 'bar' },
      h('label', { for: 'filter' }, 'Filter'), filter,
      h('label', {}, onlyErrors, ' errors only'),
      h('button', { onclick: () => chart.zoom(0.5) }, 'Zoom in'),
      h('button', { onclick: () => chart.zoom(2) }, 'Zoom out'),
      h('button', { onclick: () => chart.move(null) }, 'Now')),
    canvas,
    h('div', { class: 'split' }, list, details));
  const ticking = setInterval(() => screen.isConnected && chart.draw(chart.calls), 500);
  return { element: screen, update: draw, leave: () => clearInterval(ticking) };
}

function opening(call, close) {
  const facts = [
    ['outcome', call.outcome ?? 'running'],
    ['began', new Date(call.began).toLocaleString()],
    ['took', duration(call.duration)],
    ['client', [call.client, call.clientVersion].filter(Boolean).join(' ') || 'not named'],
    ['caller', call.caller],
    ['revision', `${call.revision} (${call.era} era)`],
    ['transport', call.transport],
  ];
  return [
    h('div', { class: 'bar' },
      h('h3', {}, call.name ? `${call.method} ${call.name}` : call.method),
      h('button', { onclick: close }, 'Close')),
    h('dl', {}, facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
    h('h4', {}, 'Arguments'),
    call.request === null ? h('p', {}, 'none') : code(call.request, 'Arguments'),
    call.notes.length
      ? [h('h4', {}, 'While it ran'), h('ol', {}, call.notes.map((note) =>
        h('li', {}, `${duration(note.at)}: ${note.text}`)))]
      : null,
    call.moreNotes ? h('p', {}, `and ${call.moreNotes} more`) : null,
    h('h4', {}, 'Response, as it was sent'),
    call.response === null ? h('p', {}, 'none') : code(call.response, 'Response'),
  ].flat();
}
