// Elements. Text is always set as text: most of it comes from other people's programs.

/** An element with properties, listeners (`onclick`), and children: elements or texts. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A row of a table. */
export function row(cells) {
  return h('tr', {}, cells.map((cell) => h('td', {}, cell)));
}

/** A table with a caption for those who do not see it. */
export function table(caption, headings, rows) {
  const head = h('tr', {}, headings.map((text) => h('th', { scope: 'col' }, text)));
  const body = rows.map(row);
  const all = h('table', {}, h('caption', {}, caption), h('thead', {}, head), h('tbody', {}, body));
  return h('div', { class: 'scroll', role: 'region', 'aria-label': caption, tabindex: '0' }, all);
}

const MAX_SHOWN = 100_000;

/** A value as JSON, or the beginning of it. */
export function code(value, label) {
  let text;
  if (value && typeof value === 'object' && typeof value.cut === 'string') {
    text = `${value.cut}\n… (${size(value.length)} in all)`;
  } else {
    text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  }
  if (text.length > MAX_SHOWN) {
    text = `${text.slice(0, MAX_SHOWN)}\n… (${size(text.length)} in all)`;
  }
  return h('pre', { tabindex: '0', role: 'region', 'aria-label': label }, text);
}

export function duration(ms) {
  if (ms === null || ms === undefined) return 'running';
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(1)} s`;
}

export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1 << 20) return `${(bytes / 1024).toFixed(1)} KB`;
  return `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

// Made once: to make one costs more than to format a thousand times.
const CLOCK = new Intl.DateTimeFormat([], { timeStyle: 'medium', hour12: false });

export function time(ms) {
  return CLOCK.format(ms);
}

/** Replaces the children of an element. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null));
}
