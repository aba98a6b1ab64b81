import { type GenerateOptions, Skein, type TextPiece } from 'skein';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { logSumExp } from '../../tools/support/goldens.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';

const cacheDir = temporaryFolder('skein-logits');
let skein: Skein;
beforeAll(async () => {
  skein = await Skein.load({ model: tinyModelPath('gqa'), weights: 'f32', threads: 1, cacheDir });
});
afterAll(() => skein?.close());

async function collect(options: GenerateOptions): Promise<TextPiece[]> {
  const pieces: TextPiece[] = [];
  for await (const piece of skein.generate(options)) pieces.push(piece);
  return pieces;
}

const ASK = {
  prompt: 'Once upon a time there was',
  maxTokens: 12,
  temperature: 0,
  ignoreEos: true,
  logProbs: 0,
  returnGenerationLogits: true,
  returnContextLogits: true,
  contextLogProbs: 2,
};

it('generate gives the logits from which its tokens were drawn, and what the prompt was worth', async () => {
  const prompt = await skein.encode(ASK.prompt);
  const pieces = await collect(ASK);
  const { contextLogits, contextLogProbs } = pieces[0]!;
  const vocabSize = contextLogits!.length / prompt.length;
  expect(Number.isInteger(vocabSize)).toBe(true);
  const row = (logits: Float32Array, i: number) => logits.subarray(i * vocabSize, (i + 1) * vocabSize);
  for (const [i, { token, logProb, top }] of contextLogProbs!.entries()) {
    const logits = row(contextLogits!, i);
    expect(token).toBe(prompt[i + 1]);
    expect(logProb).toBeCloseTo(logits[token]! - logSumExp(logits), 5);
    expect(top.length).toBe(2);
    expect(top[0]!.logProb).toBeCloseTo(Math.max(...logits) - logSumExp(logits), 5);
  }
  expect(contextLogProbs!.length).toBe(prompt.length - 1);
  const drawn = pieces.flatMap(({ tokens, generationLogits }) =>
    tokens.map((token, i) => ({ token, logits: row(generationLogits!, i) })),
  );
  const logProbs = pieces.flatMap((piece) => piece.logProbs);
  expect(drawn.length).toBe(12);
  for (const [i, { token, logits }] of drawn.entries()) {
    expect(logits[token]).toBe(Math.max(...logits));
    expect(logProbs[i]!.logProb).toBeCloseTo(logits[token]! - logSumExp(logits), 5);
  }
  expect(drawn[0]!.logits).toEqual(row(contextLogits!, prompt.length - 1));
});

it('tokens that a stop string cuts off take their logits along', async () => {
  const whole = await collect(ASK);
  const text = whole.map((piece) => piece.text).join('');
  const pieces = await collect({ ...ASK, stop: text.slice(4, 8) });
  for (const { tokens, generationLogits } of pieces) {
    const vocabSize = pieces[0]!.generationLogits!.length / pieces[0]!.tokens.length;
    expect(generationLogits!.length).toBe(tokens.length * vocabSize);
  }
  expect(pieces.at(-1)!.finishReason).toBe('stop');
});
