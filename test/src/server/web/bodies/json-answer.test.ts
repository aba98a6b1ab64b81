import { describe, expect, it } from 'vitest';
import { ANSWER_SLICE, jsonAnswer, jsonInTurns } from '../../../../../src/server/web/bodies/json-answer.js';
import { JsonList, JsonObject } from '../../../../../src/server/web/bodies/json-parts.js';

/** A long answer, with what was made of it so far. */
function longAnswer(items = 10_000) {
  const made = { items: 0 };
  const list = new JsonList(items, (index) => {
    made.items++;
    return { index, text: 'honk\u{1f986}'.repeat(4) };
  });
  return { made, answer: new JsonObject({ list, end: true }) };
}

async function chunksOf(body: ReadableStream<Uint8Array>): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return chunks;
}

describe('an answer', () => {
  it('that is short is one text', async () => {
    const value = { text: 'x'.repeat(1000), list: [1, 2] };
    const answer = jsonAnswer(value, { status: 201 });
    expect(answer.status).toBe(201);
    expect(answer.headers.get('content-type')).toBe('application/json');
    const chunks = await chunksOf(answer.body!);
    expect(chunks).toHaveLength(1);
    expect(Buffer.concat(chunks).toString()).toBe(JSON.stringify(value));
  });

  it('that is long is the same text in slices, made as they are read', async () => {
    const { made, answer } = longAnswer();
    const body = jsonAnswer(answer).body!;
    const begun = made.items;
    expect(begun).toBeLessThan(4000);
    // Nothing is made for a client that does not read.
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(made.items).toBe(begun);
    const chunks = await chunksOf(body);
    expect(made.items).toBe(10_000);
    const whole = JSON.stringify(longAnswer().answer);
    expect(Buffer.concat(chunks).toString()).toBe(whole);
    expect(chunks.length).toBeGreaterThanOrEqual(Math.floor(whole.length / ANSWER_SLICE));
    expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan(2 * ANSWER_SLICE);
  });

  it('lets others have their turn between two slices', async () => {
    let turns = 0;
    let isReading = true;
    const count = () => {
      turns++;
      if (isReading) setImmediate(count);
    };
    setImmediate(count);
    const chunks = await chunksOf(jsonAnswer(longAnswer().answer).body!);
    isReading = false;
    expect(turns).toBeGreaterThanOrEqual(chunks.length);
    turns = 0;
    isReading = true;
    setImmediate(count);
    const text = await jsonInTurns(longAnswer().answer);
    isReading = false;
    expect(text).toBe(JSON.stringify(longAnswer().answer));
    expect(turns).toBeGreaterThanOrEqual(Math.floor(text.length / (2 * ANSWER_SLICE)));
  });

  it('that cannot be begun is an error before anything is sent', () => {
    const list = new JsonList(3, () => {
      throw new Error('no');
    });
    expect(() => jsonAnswer(new JsonObject({ list }))).toThrow('no');
  });

  it('that nobody reads on with ends', async () => {
    const { made, answer } = longAnswer();
    const reader = jsonAnswer(answer).body!.getReader();
    await reader.read();
    await reader.cancel();
    const { items } = made;
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(made.items).toBe(items);
  });
});
