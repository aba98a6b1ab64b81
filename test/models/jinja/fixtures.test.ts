import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseWritten } from '../../../base/written-json.js';
import { outcome } from './render.js';

/** What Jinja2 makes of a template: a text, or the name of its exception. */
interface Result {
  template: string;
  text?: string;
  error?: string;
}

const text = (name: string) =>
  readFileSync(new URL(`../../fixtures/templates/${name}`, import.meta.url), 'utf8');
const read = <T>(name: string) => parseWritten(text(name)) as T;

const variables = {
  x: '\n a \n',
  d: [{ a: 1 }, { a: 2 }, { a: 1 }],
  m: { a: 5 },
  messages: [{ role: 'user', content: 'Q' }],
};

function expectSame(found: string, { text: wanted, error }: Result): void {
  if (error === undefined) expect(found).toBe(wanted);
  else expect(found.slice(0, found.indexOf(':'))).toBe(error);
}

describe('snippets', () => {
  it.each(read<Result[]>('constructs.json'))('are as in Jinja2: $template', (result) => {
    expectSame(outcome(result.template, variables), result);
  });
});

describe('conversations', () => {
  const conversations = new Map(
    read<{ name: string; variables: object }[]>('conversations.json').map((one) => [one.name, one.variables]),
  );
  const tokens = { bos_token: '<s>', eos_token: '</s>' };

  it.each(read<(Result & { conversation: string })[]>('rendered.json'))(
    'are as in Jinja2: $template with $conversation',
    (result) => {
      const given = { ...tokens, ...conversations.get(result.conversation) };
      expectSame(outcome(text(result.template), given), result);
    },
  );
});
