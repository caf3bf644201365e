// How two messages differ: what was translated between them.

const MAX_LINES = 50;
const MAX_TEXT = 120;

/** One line per difference, as `name: "old_echo" → "echo"`; at most 50. */
export function differences(before, after) {
  const lines = [];
  compare(before, after, '', lines);
  return lines.length > MAX_LINES
    ? [...lines.slice(0, MAX_LINES), `and ${lines.length - MAX_LINES} more`] : lines;
}

function compare(before, after, path, lines) {
  if (before === after) return;
  if (!isTree(before) || !isTree(after) || Array.isArray(before) !== Array.isArray(after)) {
    lines.push(`${path}: ${short(before)} → ${short(after)}`);
    return;
  }
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    compare(before[name], after[name], path ? `${path}.${name}` : name, lines);
  }
}

function isTree(value) {
  return value !== null && typeof value === 'object';
}

function short(value) {
  if (value === undefined) return 'absent';
  const text = JSON.stringify(value);
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}
