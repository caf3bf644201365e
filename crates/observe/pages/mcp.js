// An MCP client for the newest revision: the console calls tools like any other client.

let last = 0;

/** A header value: as it is if HTTP can carry it, else in Base64. */
function header(text) {
  const isPlain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?');
  if (isPlain) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}?=`;
}

/** Arguments that the schema of a tool wants repeated in headers. */
function mirrored(schema, values, headers) {
  for (const [key, property] of Object.entries(schema?.properties ?? {})) {
    const value = values?.[key];
    if (value === undefined || value === null || typeof property !== 'object') continue;
    const name = property['x-mcp-header'];
    if (name) headers[`Mcp-Param-${name}`] = header(String(value));
    else if (typeof value === 'object') mirrored(property, value, headers);
  }
}

export class Client {
  constructor(endpoint, revision, token) {
    Object.assign(this, { endpoint, revision, token });
  }

  /**
   * Makes a request. `onNote` hears of notifications; a question becomes an answer by `onQuestion`,
   * and the request is repeated with it. Aborting `signal` cancels.
   */
  async request(method, params, { schema, onNote, onQuestion, signal } = {}) {
    let more = {};
    for (;;) {
      const result = await this.once(method, { ...params, ...more }, { schema, onNote, signal });
      if (result.resultType !== 'input_required') return result;
      const inputResponses = {};
      for (const [key, question] of Object.entries(result.inputRequests ?? {})) {
        inputResponses[key] = await onQuestion(question);
      }
      more = { inputResponses };
      if (result.requestState !== undefined) more.requestState = result.requestState;
    }
  }

  async once(method, params, { schema, onNote, signal }) {
    const id = ++last;
    const meta = {
      'io.modelcontextprotocol/protocolVersion': this.revision,
      'io.modelcontextprotocol/clientInfo': { name: 'sabir-console', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {}, url: {} } },
      progressToken: id,
    };
    const headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      Authorization: `Bearer ${this.token}`,
      'MCP-Protocol-Version': this.revision,
      'Mcp-Method': method,
    };
    const name = params.name ?? params.uri;
    if (name !== undefined) headers['Mcp-Name'] = header(name);
    mirrored(schema, params.arguments, headers);
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } });
    const response = await fetch(this.endpoint, { method: 'POST', headers, body, signal });
    const type = response.headers.get('content-type') ?? '';
    if (!type.startsWith('text/event-stream')) return outcome(await response.json());
    for await (const message of events(response.body)) {
      if (message.id === id && message.method === undefined) return outcome(message);
      onNote?.(message);
    }
    throw new Error('the connection was closed before the result came');
  }
}

function outcome(message) {
  if (message.error) throw new Error(`${message.error.message} (${message.error.code})`);
  return message.result;
}

/** The messages of a stream of server-sent events. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    const parts = buffer.split('\n\n');
    buffer = parts.pop();
    for (const part of parts) {
      const lines = part.split('\n').filter((line) => line.startsWith('data:'));
      const data = lines.map((line) => line.slice(5).trimStart()).join('\n');
      if (data) yield JSON.parse(data);
    }
  }
}
