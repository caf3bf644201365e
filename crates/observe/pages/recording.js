// A recording that the user opens: the calls in it, in the form in which the server tells its own.

/** How long after the answer a line of standard error may arrive: it is on another pipe. */
const LATE = 50;

/** The calls of a recording, to be shown instead of those of the server. */
export class Recording {
  constructor(name, text) {
    const [first, ...lines] = text.split('\n').filter(Boolean);
    const head = parse(first);
    if (head?.recording !== 1) throw new Error(`${name} is not a recording of format 1`);
    this.title = `${name}: ${head.server}, sabir ${head.sabir}`;
    this.isLive = true;
    this.calls = new Map();
    this.details = new Map();
    this.links = new Map();
    this.started = Date.parse(head.started);
    for (const line of lines) {
      const event = parse(line);
      if (event) this.take(event);
    }
    const ends = [...this.calls.values()].map((call) => call.began + (call.duration ?? 0));
    this.end = ends.reduce((latest, end) => Math.max(latest, end), this.started);
  }

  /** The details of one call, as `Server.get` returns them. */
  async get(what) {
    const details = this.details.get(Number(what.split('/')[1]));
    if (!details) throw new Error('that call is not in the recording');
    return details;
  }

  take(event) {
    const at = this.started + event.at / 1000;
    if (event.event === 'open') this.links.set(event.link, { ...event, requests: new Map() });
    const link = this.links.get(event.link);
    if (event.event === 'call') this.begin(event, link, at);
    const call = this.details.get(event.call);
    if (event.event === 'end' && call) {
      Object.assign(call, { duration: at - call.began, outcome: event.outcome });
      call.isError = !['ok', 'input required', 'listening'].includes(event.outcome);
    }
    if (event.event === 'answer' && call) this.answer(event, call);
    const message = event.message ?? event.text;
    if (event.event === 'received' && link) this.received(event, link, message, at);
    if (event.event === 'sent' && link) this.sent(event, link, message, at);
    if (event.event === 'http' && link && call) {
      const { headers, status, response } = event;
      const heads = { request: headers, status, response };
      call.passed.push({ at: at - call.began, way: 'headers', upstream: link.name, message: heads });
    }
    if (event.event === 'stderr' && link) this.wrote(link, event.text, at);
  }

  /** A line of standard error belongs to all calls that the program works on at that time. */
  wrote(link, text, at) {
    for (const call of this.details.values()) {
      const isRunning = call.duration === null || call.began + call.duration >= at - LATE;
      if (isRunning && call.passed.some(({ upstream }) => upstream === link.name)) {
        call.stderr.push({ at: at - call.began, upstream: link.name, text });
      }
    }
  }

  begin(event, link, at) {
    const call = {
      number: event.call, method: event.method, name: event.name ?? null, caller: event.caller,
      client: event.client?.name ?? null, clientVersion: event.client?.version ?? null,
      revision: event.revision, era: event.era,
      transport: link?.transport ?? '–', began: at, duration: null, outcome: null, isError: false,
      bytes: 0, notes: [], legs: [], link, request: null, response: null, passed: [], stderr: [],
    };
    this.calls.set(event.call, call);
    this.details.set(event.call, call);
  }

  received(event, link, message, at) {
    if (link.peer === 'upstream') {
      const call = this.details.get(event.call);
      call?.passed.push({ at: at - call.began, way: 'from', upstream: link.name, message });
    } else if (message?.method) {
      link.requests.set(JSON.stringify(message.id), { message, headers: event.headers });
    }
  }

  sent(event, link, message, at) {
    const call = this.details.get(event.call);
    if (link.peer === 'upstream' && call) {
      call.passed.push({ at: at - call.began, way: 'to', upstream: link.name, message });
    }
    if (link.peer === 'client') link.last = message;
  }

  answer(event, call) {
    const asked = call.link?.requests.get(JSON.stringify(event.id));
    call.request = asked?.message ?? null;
    call.headers = asked?.headers ?? null;
    call.response = call.link?.last ?? null;
    call.bytes = JSON.stringify(call.response ?? '').length;
  }
}

function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
