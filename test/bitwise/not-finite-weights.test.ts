import { afterAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../engine/building/engine.js';
import {
  BEST_INSTRUCTION_SET,
  cacheOf,
  type Format,
  INT8_CACHE,
  openExecutor,
  precisionOf,
  TestEngines,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { freshFolders } from '../support/fresh-folders.js';
import { instructionSets } from '../support/native-options.js';
import { spoilModel } from '../support/spoilt-model.js';
import { type Answer, type RunOptions, runAlone, runLoop } from './run-loop.js';
import { type Arrival, randomScenario } from './scenario.js';

const FORMATS: readonly Format[] = ['f32', 'bf16', 'int8', 'int4'];
const NOT_FINITE = /^The logits for token \d+ of this request are not finite/;
/** A token of the vocabulary that stands in some prompts and not in others. */
const SPOILT_TOKEN = 77;
const REQUESTS = 16;

const engines = new TestEngines();
afterAll(() => engines.remove());
const freshFolder = freshFolders('skein-spoilt');

const RUNS: Record<string, RunOptions> = {
  together: { schedulerPolicy: 'GUARANTEED_NO_EVICT', numBlocks: 160, maxNumTokens: 256, chunked: false },
  'with reuse, paused and chunked': {
    schedulerPolicy: 'MAX_UTILIZATION',
    numBlocks: 16,
    maxNumTokens: 48,
    chunked: true,
    reuse: true,
  },
  'in turns': {
    schedulerPolicy: 'MAX_UTILIZATION',
    numBlocks: 160,
    maxNumTokens: 256,
    chunked: true,
    overlap: true,
  },
};

// Its output layer is not its embedding: a token may have no embedding and yet have logits.
const MODEL = tinyModelPath('mha');

function spoilt(tensor: string, row: number, value: number, format: Format): Promise<Engine> {
  return engines.get(spoilModel(MODEL, freshFolder(), { tensor, row, value }), precisionOf(format));
}

function open(engine: Engine, format: Format, instructionSet = BEST_INSTRUCTION_SET) {
  return openExecutor(engine, {
    ...cacheOf(format),
    instructionSet,
    threads: 2,
    maxSeqLen: 128,
    tokensPerBlock: 16,
    numBlocks: 160,
    maxNumTokens: 256,
    maxNumSequences: REQUESTS,
    maxLogitRows: REQUESTS,
  });
}

/** Every fourth prompt holds the spoilt token; no other does. */
function arrivals(vocabSize: number): Arrival[] {
  const all = randomScenario({
    vocabSize,
    requests: REQUESTS,
    maxPrompt: 60,
    maxNew: 40,
    arrivalSpan: 20,
    sharedPrompts: true,
    seed: 5,
  });
  for (const [index, { request }] of all.entries()) {
    const prompt = request.inputs.input_ids!.data as Int32Array;
    for (const [i, token] of prompt.entries()) if (token === SPOILT_TOKEN) prompt[i] = token + 1;
    if (index % 4 === 1) prompt[prompt.length >> 1] = SPOILT_TOKEN;
  }
  return all;
}

/** The answers with the same weights, each request alone; what held or drew the spoilt token is left out. */
async function answersOfIntact(format: Format, instructionSet: (typeof instructionSets)[number]) {
  const engine = await engines.get(MODEL, precisionOf(format));
  const executor = open(engine, format, instructionSet);
  const requests = arrivals(engine.manifest.config.vocabSize);
  const answers = runAlone(executor, engine.manifest.config, requests);
  executor.close();
  const sees = ({ request }: Arrival) =>
    [...request.inputs.input_ids!.data, ...answers.get(request.requestId)!.tokens]
      .map(Number)
      .includes(SPOILT_TOKEN);
  const untouched = new Set(
    requests.filter((arrival) => !sees(arrival)).map(({ request }) => request.requestId),
  );
  expect(untouched.size).toBeGreaterThan(4);
  return { answers, untouched };
}

describe.each(instructionSets)('on %s, a token whose embedding is not finite', (instructionSet) => {
  const isBest = instructionSet === BEST_INSTRUCTION_SET;
  it.each(isBest ? ([...FORMATS, INT8_CACHE] as const) : FORMATS)(
    'fails the requests that hold it, and no other changes a bit, in %s',
    async (format) => {
      const { answers, untouched } = await answersOfIntact(format, instructionSet);
      for (const value of isBest ? [Number.NaN, Number.POSITIVE_INFINITY] : [Number.NaN]) {
        const engine = await spoilt('model.embed_tokens.weight', SPOILT_TOKEN, value, format);
        const executor = open(engine, format, instructionSet);
        const { config } = engine.manifest;
        for (const options of Object.values(RUNS)) {
          const { answers: found } = runLoop(executor, config, arrivals(config.vocabSize), options);
          expectErrorsOfItsOwn(found, answers, untouched);
        }
        executor.close();
      }
    },
  );
});

function expectErrorsOfItsOwn(
  found: ReadonlyMap<bigint, Answer>,
  intact: ReadonlyMap<bigint, Answer>,
  untouched: ReadonlySet<bigint>,
): void {
  expect(found.size).toBe(REQUESTS);
  for (const [requestId, { tokens, logProbs, error }] of found) {
    const expected = intact.get(requestId)!;
    if (untouched.has(requestId)) {
      expect(error).toBe('');
      expect(tokens).toStrictEqual(expected.tokens);
      expect(logProbs).toStrictEqual(expected.logProbs);
    } else {
      // Drawn as the very last token it is never read.
      if (expected.tokens.indexOf(SPOILT_TOKEN) !== expected.tokens.length - 1)
        expect(error).toMatch(NOT_FINITE);
      expect(tokens).toStrictEqual(expected.tokens.slice(0, tokens.length));
    }
  }
}

describe('a weight of every request that is not finite', () => {
  it.each([
    'model.layers.1.mlp.down_proj.weight',
    'model.layers.0.self_attn.v_proj.weight',
    'model.layers.0.input_layernorm.weight',
    'lm_head.weight',
  ])('fails each of them, and the loop goes on: %s', async (tensor) => {
    for (const format of tensor.includes('v_proj') ? ([...FORMATS, INT8_CACHE] as const) : FORMATS) {
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
        const engine = await spoilt(tensor, 3, value, format);
        const executor = open(engine, format);
        const { config } = engine.manifest;
        for (const options of [RUNS['with reuse, paused and chunked']!]) {
          const { answers } = runLoop(executor, config, arrivals(config.vocabSize), options);
          expect(answers.size).toBe(REQUESTS);
          for (const { error } of answers.values()) expect(error, `${format} ${value}`).toMatch(NOT_FINITE);
        }
        executor.close();
      }
    }
  });
});
