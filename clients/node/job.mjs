// The contract between the driver and a client script in Node.
//
// A script is given one argument, a job as JSON:
//   { mode, stdio: [command, ...args] | http: url | sse: url, tool, args, follow }
// and prints one line of JSON, its observations:
//   { revision, tools: [names], text, structured }
// It judges nothing: the driver compares the answer with what was expected.

import { writeSync } from 'node:fs';

export const job = JSON.parse(process.argv[2]);

/** How these clients name themselves to the server. */
export const ME = { name: 'sabir-clients', version: '1.0.0' };

/** The text blocks of a tool's result; an `isError` result is a failure of the run. */
export function textOf(result) {
  const text = (result.content ?? []).filter((block) => block.type === 'text').map((block) => block.text).join('\n');
  if (result.isError) throw new Error(`the tool answered with an error: ${text}`);
  return text;
}

/** Calls the tool. With `follow`, a handle in words is followed to the result, as a model would. */
export async function call(client) {
  let result = await client.callTool({ name: job.tool, arguments: job.args });
  const handle = /`(await_result)` with (\{[^}]*\})/.exec(textOf(result));
  if (!job.follow || !handle) return result;
  do {
    result = await client.callTool({ name: handle[1], arguments: JSON.parse(handle[2]) });
  } while (/Call `await_result` again/.test(textOf(result)));
  result.content.unshift({ type: 'text', text: 'by await_result:' });
  return result;
}

/** Every tool's name, following the cursor to the last page. */
export async function toolNames(client) {
  const names = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return names;
}

/** Runs a script's work and turns its end into an exit code. */
export async function report(work) {
  try {
    const seen = await work();
    writeSync(1, `${JSON.stringify(seen)}\n`);
    process.exit(0);
  } catch (error) {
    writeSync(2, `${error}${error?.cause ? `\n  because: ${error.cause}` : ''}\n`);
    process.exit(1);
  }
}
