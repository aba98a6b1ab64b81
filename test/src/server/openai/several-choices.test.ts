import { describe, expect, it } from 'vitest';
import type { PieceSource } from '../../../../callbacks/piece-source.js';
import type { TokenPiece, TokenRequest } from '../../../../callbacks/token-request.js';
import type { FakeEngine } from '../../support/fake-engine.js';
import { PumpedPieces } from '../../support/pumped-pieces.js';
import { readChunks, toyServer } from '../../support/toy-server.js';

interface Answer {
  choices: { index: number; text: string; logprobs: unknown }[];
  usage: { completion_tokens: number };
  error: { message: string; param: string };
}

/** Answers of the choices; the toy codec turns each byte into its letter. */
const LETTERS = ['a', 'bb', 'ccc', 'dd'];
/** Log-prob of every token of the answer. */
const LOG_PROBS = [-2, -1, -0.5, -3];

async function* answerOf(index: number): AsyncGenerator<TokenPiece> {
  const tokens = Int32Array.from(LETTERS[index]!, (letter) => letter.charCodeAt(0));
  yield {
    tokens,
    logProbs: Float32Array.from(tokens, () => LOG_PROBS[index]!),
    finishReason: 'stop',
    cumLogProb: LOG_PROBS[index]! * tokens.length,
  };
}

/** A server whose engine takes several sequences in one request. */
function severalServer() {
  const asked: TokenRequest[] = [];
  const toy = toyServer(
    (_, index) => [
      {
        tokens: [...LETTERS[index]!].map((letter) => letter.charCodeAt(0)),
        logProbs: [...LETTERS[index]!].map(() => LOG_PROBS[index]!),
      },
      { finish: 'stop' as const },
    ],
    { model: { fitsTogether: (count: number) => count <= 4 } },
  );
  const engine = toy.engine as FakeEngine & {
    submitSeveral: (request: TokenRequest) => PieceSource<TokenPiece>[];
  };
  engine.submitSeveral = (request) => {
    asked.push(request);
    const count = request.beams?.width ?? request.numSequences!;
    return Array.from({ length: count }, (_, index) => new PumpedPieces(answerOf(index)));
  };
  const post = async (body: object) => {
    const response = await toy.post('/v1/completions', { model: 'toy', prompt: 'x', ...body });
    return { status: response.status, ...((await response.json()) as Answer) };
  };
  return { toy, asked, post };
}

describe('n', () => {
  it('is one request of the engine where it fits, and n of them where it does not', async () => {
    const { toy, asked, post } = severalServer();
    const { choices } = await post({ n: 3 });
    expect(choices.map(({ index, text }) => [index, text])).toEqual([
      [0, 'a'],
      [1, 'bb'],
      [2, 'ccc'],
    ]);
    expect(asked).toMatchObject([{ numSequences: 3 }]);
    expect(toy.engine.requests).toEqual([]);
    const other = toyServer(() => [{ tokens: [97] }, { finish: 'stop' }]);
    await other.post('/v1/completions', { model: 'toy', prompt: 'x', n: 2, seed: 9 });
    expect(
      other.engine.requests.map(({ seed, firstSequenceIndex = 0 }) => [seed, firstSequenceIndex]),
    ).toEqual([
      [9n, 0],
      [9n, 1],
    ]);
  });

  it('streams each choice with its index', async () => {
    const { toy } = severalServer();
    const response = await toy.post('/v1/completions', { model: 'toy', prompt: 'x', n: 2, stream: true });
    const texts = ['', ''];
    for (const { choices } of await readChunks<Answer>(response))
      for (const { index, text } of choices) texts[index] += text;
    expect(texts).toEqual(['a', 'bb']);
  });
});

describe('best_of', () => {
  it('gives the n answers of the greatest mean log-prob, and counts the tokens of all', async () => {
    const { asked, post } = severalServer();
    const { choices, usage } = await post({ n: 2, best_of: 4 });
    expect(choices.map(({ index, text, logprobs }) => [index, text, logprobs])).toEqual([
      [0, 'ccc', null],
      [1, 'bb', null],
    ]);
    expect(usage.completion_tokens).toBe(8);
    expect(asked).toMatchObject([{ numSequences: 4, returnLogProbs: true }]);
  });
});

describe('use_beam_search', () => {
  it('searches with as many beams as candidates, and gives the first n', async () => {
    const { asked, post } = severalServer();
    const body = {
      n: 1,
      best_of: 3,
      use_beam_search: true,
      length_penalty: 0.5,
      early_stopping: 'never',
      temperature: 0,
    };
    const { choices } = await post(body);
    expect(choices.map(({ text }) => text)).toEqual(['a']);
    expect(asked).toMatchObject([{ beams: { width: 3, lengthPenalty: 0.5, earlyStopping: 'never' } }]);
    expect(asked[0]!.numSequences).toBeUndefined();
  });

  it.each([
    [{ best_of: 2, n: 3 }, 'best_of', /'best_of' is 2, but 'n' asks for 3/],
    [{ best_of: 2, stream: true }, 'best_of', /cannot be streamed/],
    [{ use_beam_search: true, n: 2, stream: true }, 'use_beam_search', /cannot be streamed/],
    [{ use_beam_search: true }, 'best_of', /needs 'n' or 'best_of' to be at least 2/],
    [{ length_penalty: 2 }, 'length_penalty', /needs 'use_beam_search' to be true/],
    [{ early_stopping: true }, 'early_stopping', /needs 'use_beam_search' to be true/],
    [
      { early_stopping: 'always', use_beam_search: true, n: 2 },
      'early_stopping',
      /expected true, false or "never"/,
    ],
  ])('%o is refused', async (body, param, message) => {
    const { status, error } = await severalServer().post(body);
    expect(status).toBe(400);
    expect(error.param).toBe(param);
    expect(error.message).toMatch(message);
  });
});
