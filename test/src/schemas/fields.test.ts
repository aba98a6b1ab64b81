import { expect, it } from 'vitest';
import * as z from 'zod';
import { about } from '../../../src/schemas/fields.js';

it('describes a schema that two fields share for each of them, whichever comes first', () => {
  const shared = z.number();
  const first = about(shared, 'Milliseconds for the prompt.');
  const second = about(shared, 'Milliseconds for the answer.');
  expect([first, second].map((one) => z.globalRegistry.get(one)?.description)).toEqual([
    'Milliseconds for the prompt.',
    'Milliseconds for the answer.',
  ]);
  expect(second.safeParse('7').success).toBe(false);
});
