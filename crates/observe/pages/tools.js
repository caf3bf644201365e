// The catalog, and a form to call any tool, with its questions, its progress and its end.

import { code, duration, h, show, size } from './dom.js';
import { fields } from './form.js';

const SHOWN = 300;

export function toolsScreen(server, client) {
  const find = h('input', { type: 'search', id: 'find-tool', oninput: () => list() });
  const names = h('ul', { class: 'names' });
  const panel = h('section', { class: 'details', 'aria-label': 'One tool' });
  let catalog = { tools: [], prompts: [], resources: [], templates: [], counts: {} };

  function list() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (tool) => words.every((word) =>
      `${tool.name} ${tool.title ?? ''} ${tool.description ?? ''} ${tool.source ?? ''}`
        .toLowerCase().includes(word));
    const tools = catalog.tools.filter(fits);
    show(names, tools.slice(0, SHOWN).map((tool) => h('li', {},
      h('button', { class: 'link', 'data-tool': tool.name, onclick: () => choose(tool) }, tool.name),
      h('span', { class: 'hint' }, ` ${tool.source ?? ''}`))),
    tools.length > SHOWN ? h('li', {}, `and ${tools.length - SHOWN} more: type to find them`) : []);
  }

  function choose(tool) {
    show(panel, toolForm(tool, client));
    panel.querySelector('input, textarea, select, button')?.focus();
  }

  async function load() {
    try {
      catalog = await server.get('catalog');
    } catch {
      return; // The server has gone; the next look finds it.
    }
    list();
    const { counts } = catalog;
    show(summary, `${counts.tools} tools, ${counts.prompts} prompts, ${counts.resources} resources, `
      + `${counts.templates} templates`);
  }

  const summary = h('p', { class: 'hint' });
  const element = h('div', {},
    h('h2', {}, 'Tools'), summary,
    h('div', { class: 'bar' }, h('label', { for: 'find-tool' }, 'Find'), find),
    h('div', { class: 'split even' }, names, panel));
  load();
  return { element, update() {}, leave() {} };
}

function toolForm(tool, client) {
  const { elements, read } = fields(tool.inputSchema);
  const output = h('div', { 'aria-live': 'polite' });
  const call = h('button', { type: 'submit', class: 'main' }, 'Call');
  const cancel = h('button', { type: 'button', disabled: true }, 'Cancel');
  const form = h('form', {
    async onsubmit(event) {
      event.preventDefault();
      let values;
      try {
        values = read();
      } catch (error) {
        show(output, h('p', { role: 'alert', class: 'bad' }, error.message));
        return;
      }
      const abort = new AbortController();
      cancel.onclick = () => abort.abort();
      call.disabled = true;
      cancel.disabled = false;
      await run(tool, values, client, output, abort.signal);
      call.disabled = false;
      cancel.disabled = true;
    },
  }, elements, h('div', { class: 'bar' }, call, cancel));
  return [
    h('h3', {}, tool.title ?? tool.name),
    tool.title ? h('p', { class: 'hint' }, tool.name) : null,
    tool.description ? h('p', { class: 'words' }, tool.description) : null,
    form, output,
  ].filter(Boolean);
}

async function run(tool, values, client, output, signal) {
  const bar = h('progress', { 'aria-label': 'Progress' });
  const said = h('p', { class: 'hint' });
  const asked = h('div');
  show(output, bar, said, asked);
  const began = performance.now();
  const took = () => duration(performance.now() - began);
  const onNote = ({ method, params }) => {
    if (method === 'notifications/progress') {
      if (params.total) Object.assign(bar, { value: params.progress, max: params.total });
      show(said, params.message ?? `${params.progress}${params.total ? ` of ${params.total}` : ''}`);
    } else if (method === 'notifications/message') {
      show(said, typeof params.data === 'string' ? params.data : JSON.stringify(params.data));
    }
  };
  const onQuestion = (question) => ask(question, asked, signal);
  try {
    const params = { name: tool.name, arguments: values };
    const options = { schema: tool.inputSchema, onNote, onQuestion, signal };
    const result = await client.request('tools/call', params, options);
    show(output,
      h('p', { class: `state ${result.isError ? 'bad' : 'ok'}` },
        `${result.isError ? 'The tool failed' : 'Done'} after ${took()}`),
      content(result.content ?? []),
      result.structuredContent === undefined ? [] : [
        h('h4', {}, 'Structured content'), code(result.structuredContent, 'Structured content')]);
  } catch (error) {
    const what = signal.aborted ? 'Cancelled' : `Failed: ${error.message}`;
    show(output, h('p', { role: 'alert', class: 'state bad' }, `${what} after ${took()}`));
  }
}

/** The content of a result. Nothing in it is run, and only images are rendered. */
export function content(items) {
  return items.map((item) => {
    if (item.type === 'text') return code(item.text, 'Text');
    if (item.type === 'image' && /^image\/(png|jpeg|gif|webp)$/.test(item.mimeType)) {
      return h('img', { src: `data:${item.mimeType};base64,${item.data}`, alt: 'Image in the result' });
    }
    if (item.type === 'resource_link') return h('p', {}, `Link: ${item.uri}`);
    if (typeof item.data === 'string') return h('p', {}, `${item.type}, ${size(item.data.length)}`);
    return code(item, item.type);
  });
}

/** Asks the user in the page. */
function ask({ method, params }, place, signal) {
  return new Promise((resolve) => {
    const answer = (value) => {
      show(place);
      resolve(value);
    };
    signal.addEventListener('abort', () => answer({ action: 'cancel' }));
    if (method !== 'elicitation/create') {
      resolve({ action: 'decline' });
      return;
    }
    const isForm = params.mode !== 'url';
    const { elements, read } = fields(isForm ? params.requestedSchema : { properties: {} });
    const link = isForm || !/^https?:/.test(params.url) ? null
      : h('p', {}, h('a', { href: params.url, target: '_blank', rel: 'noopener noreferrer' }, params.url));
    const form = h('form', {
      class: 'question',
      onsubmit(event) {
        event.preventDefault();
        answer(isForm ? { action: 'accept', content: read() } : { action: 'accept' });
      },
    },
    h('h4', {}, 'The server asks'), h('p', { class: 'words' }, params.message), link, elements,
    h('div', { class: 'bar' },
      h('button', { type: 'submit', class: 'main' }, 'Answer'),
      h('button', { type: 'button', onclick: () => answer({ action: 'decline' }) }, 'Decline')));
    show(place, form);
    form.querySelector('input, select, textarea, button')?.focus();
  });
}

/** A search in the articles, by the tool that every other client uses for it. */
export function searchScreen(server, client) {
  const words = h('input', { type: 'search', id: 'query', required: true });
  const found = h('div', { 'aria-live': 'polite' });
  const which = h('select', { id: 'which', 'aria-label': 'Articles' });
  const form = h('form', {
    class: 'bar',
    async onsubmit(event) {
      event.preventDefault();
      try {
        const params = { name: which.value, arguments: { query: words.value } };
        const result = await client.request('tools/call', params);
        show(found, content(result.content ?? []));
      } catch (error) {
        show(found, h('p', { role: 'alert', class: 'bad' }, error.message));
      }
    },
  }, h('label', { for: 'query' }, 'Words'), words, which, h('button', { type: 'submit', class: 'main' }, 'Search'));
  const element = h('div', {}, h('h2', {}, 'Search'), form, found);
  server.get('catalog').then(({ tools }) => {
    const names = tools.map((tool) => tool.name).filter((name) => /(^|_)search_articles$|^search$/.test(name));
    show(which, names.map((name) => h('option', { value: name }, name)));
    which.hidden = names.length < 2;
    if (!names.length) show(element, h('h2', {}, 'Search'), h('p', {}, 'No articles are served here.'));
  }).catch(() => {});
  return { element, update() {}, leave() {} };
}
