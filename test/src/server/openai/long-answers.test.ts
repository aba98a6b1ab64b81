import { describe, expect, it } from 'vitest';
import { ANSWER_SLICE } from '../../../../src/server/web/bodies/json-answer.js';
import type { Step } from '../../support/fake-engine.js';
import { toyServer } from '../../support/toy-server.js';

const TOKENS = 200;
const TOP = 5;
const top = Array.from({ length: TOP }, (_, i) => [65 + i, -i - 0.5] as [number, number]);

/** An answer of many tokens with their log-probs. */
const long = (): Step[] => [
  ...Array.from({ length: TOKENS }, (): Step => ({ tokens: [65], logProbs: [-0.5], top: [top] })),
  { finish: 'length' },
];

const server = () => toyServer(long, { model: { maxInputLen: 4096, maxSeqLen: 8192, vocabSize: 300 } });

/** Slices in which an answer came. */
async function slicesOf(response: Response) {
  const slices: Uint8Array[] = [];
  for await (const slice of response.body!) slices.push(slice);
  return { slices: slices.map(({ length }) => length), text: Buffer.concat(slices).toString() };
}

describe.each([
  [
    '/v1/completions',
    { prompt: 'goose', n: 64, logprobs: TOP, max_tokens: TOKENS, return_token_ids: true },
    ({ logprobs }: Choice) => logprobs.tokens!.length,
  ],
  [
    '/v1/chat/completions',
    {
      messages: [{ role: 'user', content: 'goose' }],
      ...{ n: 64, logprobs: true, top_logprobs: TOP, max_tokens: TOKENS },
    },
    ({ logprobs }: Choice) => logprobs.content!.length,
  ],
])('%s with many log-probs', (path, fields, entriesOf) => {
  it('comes in slices of a size, and is the JSON of what it says', async () => {
    const response = await server().post(path, fields);
    expect(response.status).toBe(200);
    const { slices, text } = await slicesOf(response);
    expect(text.length).toBeGreaterThan(10 * ANSWER_SLICE);
    expect(Math.max(...slices)).toBeLessThan(2 * ANSWER_SLICE);
    expect(slices.length).toBeLessThanOrEqual(Math.ceil(text.length / ANSWER_SLICE));
    const answer = JSON.parse(text) as { choices: Choice[] };
    expect(JSON.stringify(answer)).toBe(text);
    expect(answer.choices.map(entriesOf)).toEqual(Array(64).fill(TOKENS));
    expect(answer.choices.map(({ index }) => index)).toEqual(Array.from({ length: 64 }, (_, i) => i));
  });
});

interface Choice {
  index: number;
  logprobs: { tokens?: unknown[]; content?: unknown[] };
}

describe('a list of tokens', () => {
  it('comes in slices, too', async () => {
    const toy = server();
    const prompt = 'goose'.repeat(20_000);
    const { slices, text } = await slicesOf(await toy.post('/tokenize', { prompt, return_token_strs: true }));
    expect(Math.max(...slices)).toBeLessThan(2 * ANSWER_SLICE);
    const answer = JSON.parse(text) as { tokens: number[] };
    expect(JSON.stringify(answer)).toBe(text);
    expect(answer.tokens).toHaveLength(1 + 100_000);
  });
});

describe('a stream of many choices with long frames', () => {
  it('has all of every choice, whose reader is behind from the first frame on', async () => {
    const toy = server();
    const fields = { prompt: 'goose', n: 8, logprobs: TOP, max_tokens: TOKENS, stream: true };
    const response = await toy.post('/v1/completions', fields);
    const { text } = await slicesOf(response);
    const counts = Array(8).fill(0) as number[];
    for (const line of text.split('\n\n')) {
      if (!line.startsWith('data: {')) continue;
      const [choice] = (JSON.parse(line.slice(6)) as { choices: Choice[] }).choices;
      counts[choice!.index]! += choice!.logprobs.tokens!.length;
    }
    expect(counts).toEqual(Array(8).fill(TOKENS));
  });
});
