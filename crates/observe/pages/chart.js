// The calls as bars over time, one lane per client. A line in a bar is a request to an upstream. The
// table below says the same in words.

import { time } from './dom.js';

const LANE = 22;
const TOP = 18;

export class Chart {
  constructor(canvas, onOpen) {
    this.canvas = canvas;
    this.span = 60_000;
    this.end = null; // the present, unless the user has moved away from it
    this.now = null; // the last moment of a recording, which is its present
    this.bars = [];
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8);
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const act = {
        '+': () => this.zoom(0.5),
        '-': () => this.zoom(2),
        ArrowLeft: () => this.move(-0.25),
        ArrowRight: () => this.move(0.25),
        Home: () => this.move(null),
      }[event.key];
      if (act) {
        event.preventDefault();
        act();
      }
    });
    canvas.addEventListener('click', (event) => {
      const { offsetX: x, offsetY: y } = event;
      const hit = this.bars.findLast((bar) =>
        x >= bar.x - 3 && x <= bar.x + bar.width + 3 && y >= bar.y && y <= bar.y + LANE);
      if (hit) onOpen(hit.number);
    });
  }

  zoom(factor) {
    this.span = Math.min(Math.max(this.span * factor, 50), 24 * 3_600_000);
    this.draw(this.calls);
  }

  /** Moves by a part of the visible range; `null` returns to the present. */
  move(part) {
    const now = this.now ?? Date.now();
    this.end = part === null ? null : (this.end ?? now) + part * this.span;
    if (this.end !== null && this.end >= now) this.end = null;
    this.draw(this.calls);
  }

  draw(calls) {
    this.calls = calls ?? [];
    const { canvas } = this;
    const end = this.end ?? this.now ?? Date.now();
    const begin = end - this.span;
    const seen = this.calls.filter((call) =>
      call.began <= end && call.began + (call.duration ?? Infinity) >= begin);
    const lanes = [...new Set(seen.map((call) => call.client ?? call.caller))].slice(0, 12);
    const width = canvas.clientWidth;
    const height = TOP + Math.max(lanes.length, 1) * LANE + 4;
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext('2d');
    const style = getComputedStyle(canvas);
    const [text, line, ok, bad, open, back] =
      ['--text', '--line', '--ok', '--bad', '--open', '--back'].map((name) => style.getPropertyValue(name));
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = '11px system-ui, sans-serif';
    const place = (time) => ((time - begin) / this.span) * width;
    pen.fillStyle = text;
    for (let nth = 0; nth < 5; nth += 1) {
      const x = (width * nth) / 5;
      pen.fillText(label(begin + (this.span * nth) / 5, this.span), x + 3, 12);
      pen.fillStyle = line;
      pen.fillRect(x, 0, 1, height);
      pen.fillStyle = text;
    }
    this.bars = [];
    for (const call of seen) {
      const lane = lanes.indexOf(call.client ?? call.caller);
      if (lane < 0) continue;
      const x = Math.max(place(call.began), 0);
      const till = call.duration === null ? end : call.began + call.duration;
      const bar = { x, y: TOP + lane * LANE, width: Math.max(place(till) - x, 2) };
      pen.fillStyle = call.duration === null ? open : call.isError ? bad : ok;
      pen.fillRect(bar.x, bar.y + 3, bar.width, LANE - 8);
      pen.fillStyle = back;
      for (const [at, took] of call.legs) {
        const from = Math.max(place(call.began + at), 0);
        pen.fillRect(from, bar.y + 8, Math.max(place(call.began + at + took) - from, 1), LANE - 18);
      }
      pen.fillStyle = text;
      for (const note of call.notes) pen.fillRect(place(call.began + note), bar.y + 1, 1, LANE - 4);
      this.bars.push({ ...bar, number: call.number });
    }
    pen.fillStyle = text;
    lanes.forEach((name, lane) => pen.fillText(name.slice(0, 40), 4, TOP + lane * LANE + 14));
  }
}

function label(ms, span) {
  return span < 10_000 ? `${time(ms)}.${String(Math.floor(ms % 1000)).padStart(3, '0')}` : time(ms);
}
