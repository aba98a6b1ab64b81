import type { Context } from 'hono';
import { expect, it } from 'vitest';
import { SLICE } from '../../../../../src/server/web/bodies/json-size.js';
import { readJson } from '../../../../../src/server/web/bodies/read-json.js';
import type { RequestMemory } from '../../../../../src/server/web/memory/request-memory.js';

const memory = { holdBody: () => {} } as unknown as RequestMemory;

const contextOf = (text: string) => {
  const bytes = Buffer.from(text);
  const arrayBuffer = async () => Uint8Array.from(bytes).buffer;
  return { req: { arrayBuffer, bodyCache: {} } } as unknown as Context;
};

/** What comes of a body, and the turns that others had until then. */
async function read(text: string) {
  let [turns, isDone] = [0, false];
  const count = () => {
    if (isDone) return;
    turns++;
    setImmediate(count);
  };
  setImmediate(count);
  const value = await readJson(contextOf(text), memory);
  isDone = true;
  return { value, turns };
}

it('reads a short body', async () => {
  expect(await read('{"a": [1, "ä"]}')).toMatchObject({ value: { a: [1, 'ä'] } });
});

it('gives others a turn between what a long body is decoded, parsed and read in', async () => {
  const long = 'x'.repeat(3 * SLICE);
  const { value, turns } = await read(JSON.stringify({ long }));
  expect(value).toEqual({ long });
  // Between the slices that are counted, after the text, and after its values.
  expect(turns).toBeGreaterThanOrEqual(3 + 2);
});

it('refuses what is no JSON, with the reason', async () => {
  await expect(read('{"a": ')).rejects.toThrow('The body is not valid JSON: ');
});
