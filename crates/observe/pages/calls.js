// The calls: a chart, a table, and one call opened.

import { Chart } from './chart.js';
import { differences } from './difference.js';
import { code, duration, h, row, show, size, table, time } from './dom.js';
import { Recording } from './recording.js';

// Rows at first, and how many more at a time. The browser lays out two or three in a millisecond.
const ROWS = 50;
const MORE = 200;

export function callsScreen(server, state) {
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
  const recorded = h('p', { role: 'status' });
  const file = h('input', {
    type: 'file', id: 'recording', async onchange() {
      try {
        const [chosen] = file.files;
        source = chosen ? new Recording(chosen.name, await chosen.text()) : server;
      } catch (error) {
        return show(recorded, error.message);
      }
      file.value = '';
      choose();
    },
  });
  // The server, or a recording that is shown instead of it.
  let source = server;
  let opened = null;
  let progress;
  const recorder = recorderSwitch(server, state);
  // The rows that are shown, by the numbers of their calls: each is made once for each outcome.
  let rows = new Map();
  let body = null;
  let most = ROWS;
  const more = h('button', {
    hidden: true,
    onclick() {
      most += MORE;
      draw();
    },
  }, 'Show more');

  /** Shows the calls of another source. */
  function choose() {
    chart.now = source.end ?? null;
    chart.move(null);
    show(recorded, source === server ? [] : [source.title, ' ', h('button', {
      onclick() {
        source = server;
        choose();
      },
    }, 'Back to the server')]);
    if (opened !== null) close();
    body = null;
    draw();
  }

  function matching() {
    if (!filter.value && !onlyErrors.checked) return [...source.calls.values()];
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (call) => {
      if (onlyErrors.checked && !call.isError) return false;
      const text = [call.method, call.name, call.client, call.caller, call.outcome, call.revision,
        call.transport].join(' ').toLowerCase();
      return words.every((word) => text.includes(word));
    };
    return [...source.calls.values()].filter(fits);
  }

  function cells(call) {
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
    recorder.update();
    if (opened !== null && stage(opened) !== undefined && stage(opened) !== progress) load(opened);
    more.hidden = calls.length <= most;
    const caption = calls.length > most
      ? `The newest ${most} of ${calls.length} requests`
      : `${calls.length} requests`;
    if (!calls.length) {
      body = null;
      return show(list, h('p', {}, 'No requests yet. Connect a client, or call a tool here.'));
    }
    if (!body) {
      const headings = ['time', 'request', 'outcome', 'took', 'result', 'client', 'caller', 'revision', 'by'];
      show(list, table(caption, headings, []));
      body = list.querySelector('tbody');
      rows = new Map();
    }
    show(list.querySelector('caption'), caption);
    list.firstChild.setAttribute('aria-label', caption);
    const focused = document.activeElement?.dataset?.call;
    const before = rows;
    rows = new Map(calls.slice(-most).reverse().map((call) => {
      const known = before.get(call.number);
      const isSame = known && known.outcome === call.outcome;
      return [call.number, isSame ? known : { outcome: call.outcome, element: row(cells(call)) }];
    }));
    // Rows that stay are not touched: to lay out all of them takes longer than a frame.
    for (const [number, { element }] of before) {
      if (rows.get(number)?.element !== element) element.remove();
    }
    let next = body.firstChild;
    for (const { element } of rows.values()) {
      if (element === next) next = next.nextSibling;
      else body.insertBefore(element, next);
    }
    if (focused) list.querySelector(`[data-call="${focused}"]`)?.focus();
  }

  async function open(number) {
    details.hidden = false;
    await load(number);
    details.scrollIntoView({ block: 'nearest' });
    details.querySelector('button')?.focus();
  }

  /** Shows one call, and again when it changes. */
  async function load(number) {
    opened = number;
    progress = stage(number);
    try {
      const call = await source.get(`calls/${number}`);
      if (opened !== number) return;
      const hadFocus = details.contains(document.activeElement);
      show(details, opening(call, close));
      if (hadFocus) details.querySelector('button').focus();
    } catch (error) {
      show(details, h('p', { role: 'alert' }, error.message));
    }
  }

  /** Grows with every new detail of a call. */
  function stage(number) {
    const call = source.calls.get(number);
    return call && `${call.outcome} ${call.notes.length} ${call.legs.length}`;
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
      h('button', { onclick: () => chart.move(null) }, 'Now'),
      recorder.element,
      h('label', { for: 'recording' }, 'Recording'), file),
    recorder.words,
    recorded,
    canvas,
    h('div', { class: 'split' }, h('div', {}, list, more), details));
  const ticking = setInterval(() => screen.isConnected && chart.draw(chart.calls), 500);
  return { element: screen, update: draw, leave: () => clearInterval(ticking) };
}

/** Begins and ends a recording on the server. */
function recorderSwitch(server, state) {
  const words = h('p', { role: 'status', class: 'hint' });
  let recording = state().recording;
  let seen = state();
  // A state that was requested before the last answer is outdated.
  let answered = 0;
  const element = h('button', {
    async onclick() {
      try {
        recording = await server.get(recording?.isOn ? 'record-stop' : 'record-start', 'POST');
      } catch (error) {
        return show(words, error.message);
      } finally {
        answered = performance.now();
      }
      state().recording = recording;
      draw();
    },
  });
  function draw() {
    show(element, recording?.isOn ? 'Stop recording' : 'Record');
    if (!recording) return show(words);
    const end = recording.isOver ? ', which has reached its limit' : '';
    show(words, `${recording.isOn ? 'Recording to' : 'Recorded to'} ${recording.path} (${size(recording.written)}${end})`);
  }
  function update() {
    if (seen === state()) return;
    seen = state();
    if (seen.asked < answered) return;
    recording = seen.recording;
    draw();
  }
  draw();
  return { element, words, update };
}

/** The messages between the server and its upstreams for a call, and how they were translated. */
function relayed(call) {
  const parts = [];
  let given = null;
  for (const { at, way, upstream, message } of call.passed) {
    const title = { to: `to ${upstream}`, from: `from ${upstream}`, headers: `headers of ${upstream}` }[way];
    parts.push(h('h4', {}, `${duration(at)}: ${title}`));
    if (way === 'to') parts.push(translated(call.request?.params, message?.params));
    parts.push(code(message, title));
    if (way === 'from' && message?.id !== undefined && !message.method) given = message;
  }
  if (call.morePassed) parts.push(h('p', {}, `and ${call.morePassed} more messages`));
  const answer = (message) => message?.result ?? message?.error;
  return [...parts, h('h4', {}, 'Response, as it was sent'),
    given && call.response ? translated(answer(given), answer(call.response)) : null];
}

function translated(before, after) {
  if (!before || !after) return null;
  const lines = differences(before, after);
  return lines.length
    ? h('ul', { class: 'translated', 'aria-label': 'Translated' }, lines.map((line) => h('li', {}, line)))
    : h('p', { class: 'hint' }, 'passed on as it was');
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
    call.headers ? [h('h4', {}, 'Headers'), code(call.headers, 'Headers')] : null,
    h('h4', {}, 'Request, as it came'),
    call.request === null ? h('p', {}, 'not kept') : code(call.request, 'Request'),
    call.legs.length
      ? [h('h4', {}, 'Upstreams'), h('ol', {}, call.legs.map(({ at, took, upstream, text }) =>
        h('li', {}, `${duration(at)}: ${upstream}, ${text}, ${duration(took)}`)))]
      : null,
    call.notes.length
      ? [h('h4', {}, 'While it ran'), h('ol', {}, call.notes.map((note) =>
        h('li', {}, `${duration(note.at)}: ${note.text}`)))]
      : null,
    call.moreNotes ? h('p', {}, `and ${call.moreNotes} more`) : null,
    call.stderr.length
      ? [h('h4', {}, 'Standard error of its upstreams meanwhile'),
        code(call.stderr.map(({ at, upstream, text }) => `${duration(at)} ${upstream}: ${text}`).join('\n'), 'Standard error')]
      : null,
    relayed(call),
    call.response === null ? h('p', {}, 'none') : code(call.response, 'Response'),
  ].flat();
}
