import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import type { WeightPrecision } from '../../engine/directory/engine-directory.js';
import { type LoadedEncoder, loadEncoder } from '../../engine/encoder/load-encoder.js';
import { INSTRUCTION_SETS, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { describeWithTestEncoder, TINY_ENCODERS, testEncoderPath } from '../support/test-encoder.js';

interface Case {
  model: (typeof TINY_ENCODERS)[number];
  ids: number[];
  types: number[];
  /** The embedding, or the score after its activation. */
  output: number[];
}

function readCases<T>(name: string, field: string): T[] {
  const path = new URL(`../goldens/${name}.json`, import.meta.url);
  return (JSON.parse(readFileSync(path, 'utf8')) as Record<string, T[]>)[field]!;
}

const engines = new TestEngines();
afterAll(() => engines.remove());

const LIMITS = { maxNumTokens: 1024, maxNumSequences: 16 };

async function open(model: string, precision: WeightPrecision, instructionSet?: InstructionSet) {
  const engine = await engines.get(model, precision);
  return loadEncoder(engine.directory, { ...LIMITS, threads: 2, instructionSet });
}

async function openWasm(model: string) {
  const engine = await engines.get(model, 'f32');
  return loadEncoder(engine.directory, { ...LIMITS, executor: 'wasm' });
}

function sequenceOf({ ids, types }: Pick<Case, 'ids' | 'types'>): EncoderSequence {
  return { tokenIds: Int32Array.from(ids), tokenTypes: Int32Array.from(types) };
}

/** The rows of one batch of all the cases, with a score's activation. */
function outputs(encoder: LoadedEncoder, cases: readonly Pick<Case, 'ids' | 'types'>[]): Float32Array[] {
  const rows = encoder.encode(cases.map(sequenceOf));
  const { head } = encoder.config;
  const sigmoid = head.kind === 'score' && head.activation === 'sigmoid';
  return cases.map((_, i) => {
    const row = rows.slice(i * encoder.outputWidth, (i + 1) * encoder.outputWidth);
    return sigmoid ? row.map((x) => 1 / (1 + Math.exp(-x))) : row;
  });
}

function greatestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  return Array.from(a).reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);
}

function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const dot = (x: ArrayLike<number>, y: ArrayLike<number>) =>
    Array.from(x).reduce((sum, v, i) => sum + v * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

/** Greatest difference in f32 of a score, and of an embedding whose values are of the order of 1. */
const F32_DIFFERENCE_MAX = 2e-5;
const COSINE_MIN = { bf16: 0.999, int8: 0.998, int4: 0.85 } as const;

describe.each(TINY_ENCODERS)('tiny %s against Hugging Face transformers', (model) => {
  const cases = readCases<Case>('encoders', 'cases').filter((one) => one.model === model);

  it.each(INSTRUCTION_SETS)(
    'f32 on %s gives the same rows, from one ragged batch',
    async (instructionSet) => {
      const encoder = await open(tinyModelPath(model), 'f32', instructionSet);
      for (const [i, row] of outputs(encoder, cases).entries()) {
        const difference = greatestDifference(row, cases[i]!.output);
        expect(difference, `case ${i} of ${cases[i]!.ids.length} tokens`).toBeLessThan(F32_DIFFERENCE_MAX);
      }
      encoder.close();
    },
  );

  it('f32 on wasm gives the same rows', async () => {
    const encoder = await openWasm(tinyModelPath(model));
    expect(encoder.executor).toBe('wasm');
    for (const [i, row] of outputs(encoder, cases).entries()) {
      expect(greatestDifference(row, cases[i]!.output), `case ${i}`).toBeLessThan(F32_DIFFERENCE_MAX);
    }
    encoder.close();
  });

  it.each(['bf16', 'int8', 'int4'] as const)('%s weights stay close to it', async (precision) => {
    const encoder = await open(tinyModelPath(model), precision);
    const rows = outputs(encoder, cases);
    encoder.close();
    // An encoder that gives one value: all cases together make the vector.
    const ours = encoder.outputWidth === 1 ? [rows.flatMap((row) => [...row])] : rows;
    const reference =
      encoder.outputWidth === 1 ? [cases.flatMap(({ output }) => output)] : cases.map(({ output }) => output);
    for (const [i, row] of ours.entries()) {
      expect(cosine(row, reference[i]!), `case ${i}`).toBeGreaterThan(COSINE_MIN[precision]);
    }
  });
});

describeWithTestEncoder('all-MiniLM-L6-v2 against Hugging Face transformers', () => {
  const texts = readCases<{ text: string; ids: number[]; output: number[] }>('minilm', 'texts');
  const cases = texts.map(({ ids }) => ({ ids, types: ids.map(() => 0) }));

  it('f32 gives the same embeddings', async () => {
    const encoder = await open(testEncoderPath!, 'f32');
    for (const [i, row] of outputs(encoder, cases).entries()) {
      expect(greatestDifference(row, texts[i]!.output), texts[i]!.text.slice(0, 40)).toBeLessThan(2e-6);
    }
    encoder.close();
  });

  it.each([
    ['bf16', 0.9999],
    ['int8', 0.997],
    ['int4', 0.9],
  ] as const)('%s weights give embeddings with a cosine above %f', async (precision, least) => {
    const encoder = await open(testEncoderPath!, precision);
    const cosines = outputs(encoder, cases).map((row, i) => cosine(row, texts[i]!.output));
    encoder.close();
    expect(Math.min(...cosines)).toBeGreaterThan(least);
  });
});
