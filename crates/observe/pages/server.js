// The API of the server: its state, its catalog, and the calls as they happen.

import { events } from './mcp.js';

const KEY = 'sabir-console-token';
const MAX_CALLS = 10_000;

/** The token in the address moves into this tab, where no other page sees it. */
export function takeToken() {
  const given = /^#token=(.+)$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem(KEY, decodeURIComponent(given[1]));
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem(KEY);
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

export class Refused extends Error {}

export class Server {
  constructor(token) {
    this.token = token;
    this.calls = new Map();
    this.version = 0;
    this.isLive = false;
  }

  async get(what, method = 'GET') {
    const headers = { Authorization: `Bearer ${this.token}` };
    const response = await fetch(`/console/api/${what}`, { method, headers });
    if (response.status === 401) throw new Refused();
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }

  /** Follows the calls for as long as the page lives. */
  async follow(onChange) {
    for (;;) {
      try {
        const headers = { Authorization: `Bearer ${this.token}` };
        const address = `/console/api/events?after=${this.version}`;
        const response = await fetch(address, { headers });
        if (!response.ok) throw new Error(`status ${response.status}`);
        this.isLive = true;
        onChange();
        for await (const { version, calls } of events(response.body)) {
          this.version = version;
          for (const call of calls) this.calls.set(call.number, call);
          for (const number of this.calls.keys()) {
            if (this.calls.size <= MAX_CALLS) break;
            this.calls.delete(number);
          }
          onChange();
        }
      } catch {
        // The server has gone; it may return.
      }
      this.isLive = false;
      onChange();
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}
