import { Skein } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runGuidedSoak } from '../../tools/guided-soak/soak.js';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';

const engines = new TestEngines();
let skein: Skein;

beforeAll(async () => {
  const { directory } = await engines.get(tinyModelPath('gqa'), 'f32');
  skein = await Skein.load({ model: directory });
});

afterAll(async () => {
  await skein.close();
  engines.remove();
});

describe('the short form of tools/guided-soak', () => {
  it('finds no answer that came to its end and is not valid', async () => {
    const result = await runGuidedSoak({ skein, count: 60, seed: 1, crowd: 8, maxTokens: 200 });
    expect(result.failures).toEqual([]);
    expect(result.complete).toBeGreaterThan(25);
  });
});

describe('a model in its threads', () => {
  it('keeps to every kind of guide, whatever the sampling', async () => {
    const complete = (guided: object, seed: number) =>
      skein.complete({ prompt: 'x', guided, temperature: 2, seed, maxTokens: 60 });
    const answers = await Promise.all([
      complete({ regex: '[a-c]{2}-[0-9]{3}' }, 1),
      complete({ choice: ['red', 'green'] }, 2),
      complete({ grammar: 'root ::= "(" [xy]{1,5} ")"' }, 3),
      complete(
        {
          structuralTag: {
            format: { type: 'tag', begin: '<a>', content: { type: 'regex', pattern: '[0-9]' }, end: '</a>' },
          },
        },
        4,
      ),
      complete({ json: { type: 'array', items: { type: 'boolean' }, minItems: 2, maxItems: 2 } }, 5),
    ]);
    const patterns = [
      /^[a-c]{2}-[0-9]{3}$/,
      /^(red|green)$/,
      /^\([xy]{1,5}\)$/,
      /^<a>[0-9]<\/a>$/,
      /^\[\s*(true|false),\s*(true|false)\s*\]$/,
    ];
    for (const [i, { text, finishReason }] of answers.entries()) {
      expect(text).toMatch(patterns[i]!);
      expect(finishReason).toBe('stop');
    }
  });

  it('refuses what is no guide before anything runs', async () => {
    const refused = (guided: object, ignoreEos = false) =>
      expect(skein.complete({ prompt: 'x', guided, ignoreEos })).rejects;
    await refused({ json: { not: {} } }).toThrow('No text matches the guide');
    await refused({}).toThrow('none of them is given');
    await refused({ jsn: {} }).toThrow('jsn');
    await refused({ json: true, regex: 'a' }).toThrow('json, regex are given');
    await refused({ regex: 'a' }, true).toThrow("ignoring the model's end tokens");
  });
});
