import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { outcome } from './render.js';

interface Probe {
  name: string;
  template: string;
  /** What Jinja2 makes of it. */
  text?: string;
  /** The name of the exception that it raises. */
  error?: string;
}

const probes = JSON.parse(
  readFileSync(new URL('../../fixtures/templates/probes.json', import.meta.url), 'utf8'),
) as Probe[];

const variables = {
  x: '\n a \n',
  d: [{ a: 1 }, { a: 2 }, { a: 1 }],
  m: { a: 5 },
  messages: [{ role: 'user', content: 'Q' }],
};

it.each(probes)('$name is as in Jinja2', ({ template, text, error }) => {
  const found = outcome(template, variables);
  if (error === undefined) expect(found).toBe(text);
  else expect(found.split(':')[0]).toBe(error);
});
