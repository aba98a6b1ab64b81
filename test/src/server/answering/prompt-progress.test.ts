import { describe, expect, it } from 'vitest';
import type { TokenRequest } from '../../../../callbacks/token-request.js';
import type { Step } from '../../support/fake-engine.js';
import { readChunks, say, toyServer } from '../../support/toy-server.js';

const CHAT = '/v1/chat/completions';
const COMPLETIONS = '/v1/completions';

interface Chunk {
  object: string;
  choices: { index: number; delta?: object; text?: string; finish_reason: string | null }[];
  prompt_progress?: { total: number; cache: number; processed: number; time_ms: number };
  timings?: object;
}

/** An answer whose prompt takes two parts, where its request asks for them. */
const script = (request: TokenRequest): Step[] => {
  const total = request.promptTokens.length;
  const told: Step[] = [
    { progress: { done: total - 1, cached: 1, ms: 5 } },
    { progress: { done: total, cached: 1, ms: 9 } },
  ];
  return [...(request.returnContextProgress ? told : []), ...say('ok')];
};

async function ask(path: string, fields: object, asked: TokenRequest[] = []): Promise<Response> {
  const toy = toyServer((request) => {
    asked.push(request);
    return script(request);
  });
  const prompt = path === CHAT ? { messages: [{ role: 'user', content: 'hi' }] } : { prompt: 'abcdef' };
  return toy.post(path, { ...prompt, ...fields });
}

describe.each([
  [CHAT, 'chat.completion.chunk', { delta: { role: 'assistant', content: null } }],
  [COMPLETIONS, 'text_completion', { text: '' }],
])('%s', (path, object, empty) => {
  it('tells how far the prompt is, in chunks before the answer', async () => {
    const asked: TokenRequest[] = [];
    const chunks = await readChunks<Chunk>(await ask(path, { stream: true, return_progress: true }, asked));
    const total = asked[0]!.promptTokens.length;
    const [first, second, ...rest] = chunks;
    const nothing = [{ index: 0, ...empty, logprobs: null, finish_reason: null }];
    expect(first).toMatchObject({ object, choices: nothing });
    expect(first!.prompt_progress).toEqual({ total, cache: 1, processed: total - 1, time_ms: 5 });
    expect(second).toMatchObject({ object, choices: nothing });
    expect(second!.prompt_progress).toEqual({ total, cache: 1, processed: total, time_ms: 9 });
    const same = (chunk: Chunk) => ({ ...chunk, id: '', created: 0, choices: without(chunk.choices) });
    const plain = await readChunks<Chunk>(await ask(path, { stream: true }));
    expect(rest.map(same)).toEqual(plain.map(same));
    for (const chunk of plain) expect(chunk).not.toHaveProperty('prompt_progress');
  });

  it('accepts the field without effect where the answer is whole', async () => {
    const asked: TokenRequest[] = [];
    const response = await ask(path, { return_progress: true }, asked);
    expect(response.status).toBe(200);
    expect(await response.json()).not.toHaveProperty('prompt_progress');
    expect(asked[0]!.returnContextProgress).toBeUndefined();
  });

  it('tells it once for several answers, and timings beside it', async () => {
    const asked: TokenRequest[] = [];
    const fields = { stream: true, return_progress: true, n: 3, timings_per_token: true };
    const chunks = await readChunks<Chunk>(await ask(path, fields, asked));
    const told = chunks.filter(({ prompt_progress: progress }) => progress !== undefined);
    expect(told.map(({ choices }) => choices[0]!.index)).toEqual([0, 0]);
    for (const chunk of told) expect(chunk).toHaveProperty('timings');
    expect(asked.map(({ returnContextProgress }) => returnContextProgress ?? false)).toEqual([
      true,
      false,
      false,
    ]);
    expect(chunks.filter(({ choices }) => choices[0]?.finish_reason === 'stop')).toHaveLength(3);
  });
});

/** Choices without their seeds, which are drawn. */
const without = (choices: Chunk['choices']) => choices.map((choice) => ({ ...choice, seed: 0 }));

it('tells the progress of each prompt under the index of its first answer', async () => {
  const toy = toyServer(script);
  const body = { prompt: ['abc', 'defghi'], n: 2, stream: true, return_progress: true };
  const chunks = await readChunks<Chunk>(await toy.post(COMPLETIONS, body));
  const told = chunks.flatMap(({ choices, prompt_progress: progress }) =>
    progress === undefined ? [] : [[choices[0]!.index, progress.processed, progress.total]],
  );
  const [a, b] = [0, 2].map((index) => toy.engine.requests[index]!.promptTokens.length);
  expect(told.sort((x, y) => x[0]! - y[0]! || x[1]! - y[1]!)).toEqual([
    [0, a! - 1, a],
    [0, a, a],
    [2, b! - 1, b],
    [2, b, b],
  ]);
});
