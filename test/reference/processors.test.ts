import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { Tensor } from '../../callbacks/types.js';
import { SamplingRows } from '../../engine/batch/sampling-rows.js';
import { SamplingResults } from '../../engine/decoding/sampling-results.js';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import { validateRequest } from '../../engine/intake/request-validation.js';
import { ROW_OK } from '../../engine/packed-call/sampling-batch.js';
import { LlmRequest } from '../../engine/request/llm-request.js';
import { makeRequest } from '../../tools/support/loop-harness.js';
import { makeStepBatch } from '../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../tools/support/tiny-network.js';
import { executorOptions } from '../support/native-options.js';
import { draws } from '../support/scale.js';

/** Parameters in the names of a GenerationConfig, and OpenAI's two. */
interface Parameters {
  temperature?: number;
  top_k?: number;
  top_p?: number;
  min_p?: number;
  repetition_penalty?: number;
  min_new_tokens?: number;
  no_repeat_ngram_size?: number;
  bad_words_ids?: number[][];
  sequence_bias?: [number[], number][];
  presence_penalty?: number;
  frequency_penalty?: number;
}

interface ProcessorCase {
  name: string;
  row: number;
  parameters: Parameters;
  /** Log-probs of all tokens, after all processors but truncation; null: banned. */
  logProbs: (number | null)[];
  /** Tokens that are left after all processors, with their probabilities. */
  tokens: number[];
  probabilities: number[];
}

interface ProcessorGolden {
  endId: number;
  prompt: number[];
  generated: number[];
  rows: number[][];
  cases: ProcessorCase[];
}

const path = new URL('../goldens/processors.json', import.meta.url);
const golden = JSON.parse(readFileSync(path, 'utf8')) as ProcessorGolden;
const VOCAB = golden.rows[0]!.length;
const ROWS = 64;
const CALLS = draws(20);
/** Greatest difference of a log-prob from one computed in float32 in another order. */
const LOG_PROB_DIFFERENCE_MAX = 2e-5;

let tiny: TinyNetwork;
let executor: NativeExecutor;
beforeAll(() => {
  tiny = makeTinyNetwork({
    vocabSize: VOCAB,
    hiddenSize: 8,
    intermediateSize: 8,
    numLayers: 1,
  });
  const limits = { maxNumSequences: ROWS, maxLogitRows: ROWS, numBlocks: 1 };
  executor = new NativeExecutor(tiny, executorOptions({ threads: 2, ...limits }));
});
afterAll(() => {
  executor.close();
  tiny.remove();
});

const f32 = (value: number): Tensor => ({ shape: [1], data: Float32Array.of(value) });
const i32 = (value: number): Tensor => ({ shape: [1], data: Int32Array.of(value) });

/** The tensors that say what the parameters say. */
function tensorsOf(parameters: Parameters): Record<string, Tensor> {
  const inputs: Record<string, Tensor> = { temperature: f32(1), end_id: i32(golden.endId) };
  const set = (name: string, value: number | undefined, tensor: (value: number) => Tensor) => {
    if (value !== undefined) inputs[name] = tensor(value);
  };
  set('temperature', parameters.temperature, f32);
  set('runtime_top_k', parameters.top_k, i32);
  set('runtime_top_p', parameters.top_p, f32);
  set('runtime_min_p', parameters.min_p, f32);
  set('repetition_penalty', parameters.repetition_penalty, f32);
  set('presence_penalty', parameters.presence_penalty, f32);
  set('frequency_penalty', parameters.frequency_penalty, f32);
  set('no_repeat_ngram_size', parameters.no_repeat_ngram_size, i32);
  set('min_length', parameters.min_new_tokens, i32);
  const { bad_words_ids: words, sequence_bias: biases } = parameters;
  if (words) inputs.bad_words_list = encodeWordList(words);
  if (!biases) return inputs;
  if (biases.length === VOCAB) {
    const data = new Float32Array(VOCAB);
    for (const [[token], bias] of biases) data[token!] = bias;
    return { ...inputs, embedding_bias: { shape: [1, VOCAB], data } };
  }
  const shape = [1, biases.length];
  inputs.logit_bias_tokens = { shape, data: Int32Array.from(biases, ([tokens]) => tokens[0]!) };
  inputs.logit_bias = { shape, data: Float32Array.from(biases, ([, bias]) => bias) };
  return inputs;
}

/** A request of these parameters that has generated the golden's tokens, as it stands before its next draw. */
function requestOf(parameters: Parameters, seed: bigint, topLogProbs: number): LlmRequest {
  const inputs: Record<string, Tensor> = {
    ...tensorsOf(parameters),
    random_seed: { shape: [1], data: BigUint64Array.of(seed) },
    top_log_probs: i32(topLogProbs),
  };
  const sizes = {
    vocabSize: VOCAB,
    promptRowWidth: 8,
    turnsByGrid: false,
    maxSeqLen: 1000,
    attendsToAll: true,
  };
  const limits = { ...sizes, maxBeamWidth: 1, maxTopLogProbs: VOCAB };
  const spec = validateRequest(makeRequest(seed, golden.prompt, 50, inputs), limits, () => seed);
  const request = new LlmRequest(spec, 0, VOCAB);
  request.chunkLength = golden.prompt.length;
  request.finishChunk();
  const drawn = new SamplingResults(1);
  for (const [i, token] of golden.generated.entries()) {
    drawn.tokens[0] = token;
    request.append(drawn, 0, i === 0);
  }
  return request;
}

/** Draws one token for each request, from the same logits. */
function draw(requests: LlmRequest[], logits: readonly number[]): SamplingResults {
  const rows = new SamplingRows(ROWS, ROWS * 100);
  for (const request of requests) rows.add(request, request.live[0]!);
  const output = new SamplingResults(requests.length);
  output.makeRoom(rows);
  const sequences = requests.map(() => ({ tokens: [1], cached: 0, blocks: [0] }));
  const { inverseFrequencies } = tiny;
  const view = executor.forward(makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies }));
  for (const row of requests.keys()) view.set(logits, row * VOCAB);
  executor.sample(rows, output);
  return output;
}

describe.each(golden.cases.map((one, i) => ({ ...one, firstSeed: 10_000 * i })))(
  "$name, against transformers' processors",
  ({ row, parameters, firstSeed, ...expected }) => {
    const logits = golden.rows[row]!;

    it('gives every token its log-prob before truncation', () => {
      const { topTokens, topLogProbs, status } = draw([requestOf(parameters, 1n, VOCAB)], logits);
      expect(status[0]).toBe(ROW_OK);
      expect([...topTokens].sort((a, b) => a - b)).toEqual(logits.map((_, token) => token));
      for (const [i, token] of topTokens.entries()) {
        const wanted = expected.logProbs[token]!;
        if (wanted === null) expect(topLogProbs[i], `token ${token}`).toBe(-Infinity);
        else
          expect(Math.abs(topLogProbs[i]! - wanted), `token ${token}`).toBeLessThan(LOG_PROB_DIFFERENCE_MAX);
      }
    });

    /**
     * Chi-square over the tokens, those expected fewer than 5 times as one. Four standard deviations above its mean is less
     * than one in 3000 for a sampler that is right; the seeds are fixed.
     */
    it('draws what is left after truncation, all of it, as often as it should', () => {
      const counts = new Map(expected.tokens.map((token) => [token, 0]));
      for (let call = 0; call < CALLS; call++) {
        const seeds = Array.from({ length: ROWS }, (_, i) => BigInt(firstSeed + call * ROWS + i));
        const { tokens } = draw(
          seeds.map((seed) => requestOf(parameters, seed, 0)),
          logits,
        );
        for (const token of tokens) {
          const before = counts.get(token) ?? expect.fail(`token ${token} is not one of those left`);
          counts.set(token, before + 1);
        }
      }
      const count = CALLS * ROWS;
      const rare = { expected: 0, found: 0 };
      let [chiSquare, classes] = [0, 0];
      const add = (wanted: number, found: number) => {
        chiSquare += (found - wanted) ** 2 / wanted;
        classes++;
      };
      for (const [i, token] of expected.tokens.entries()) {
        const wanted = expected.probabilities[i]! * count;
        const found = counts.get(token)!;
        if (wanted >= 10) expect(found, `token ${token}`).toBeGreaterThan(0);
        if (wanted >= 5) add(wanted, found);
        else {
          rare.expected += wanted;
          rare.found += found;
        }
      }
      if (rare.expected >= 5) add(rare.expected, rare.found);
      expect(classes).toBeGreaterThan(1);
      expect(chiSquare).toBeLessThan(classes - 1 + 4 * Math.sqrt(2 * (classes - 1)));
    });
  },
);
