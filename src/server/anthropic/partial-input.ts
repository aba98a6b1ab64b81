import { isObject } from '../../../base/option-values.js';

const CLOSERS: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/**
 * The arguments of a call as an object, which Anthropic's form needs. Where a limit has cut them off, as much of them
 * as is whole:
 *
 *   {"city": "Ur", "days": [1, 2      ->    {"city": "Ur", "days": [1]}
 *
 * Arguments that are no object are none.
 */
export function partialInput(text: string): Record<string, unknown> {
  return objectOf(text) ?? objectOf(wholePart(text)) ?? {};
}

function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** The longest beginning after which the open lists and objects can be closed. */
function wholePart(text: string): string {
  const open: string[] = [];
  let isText = false;
  let whole = { end: 0, closers: '' };
  const mark = (end: number) => {
    whole = { end, closers: open.toReversed().join('') };
  };
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!;
    if (isText) {
      if (character === '\\') i++;
      else if (character === '"') isText = false;
    } else if (character === '"') isText = true;
    else if (character in CLOSERS) {
      open.push(CLOSERS[character]!);
      mark(i + 1);
    } else if (character === '}' || character === ']') {
      open.pop();
      mark(i + 1);
    } else if (character === ',') mark(i);
  }
  return text.slice(0, whole.end) + whole.closers;
}
