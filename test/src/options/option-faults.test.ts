import { describe, expect, it } from 'vitest';
import { mustBe, wholeNumber } from '../../../base/option-values.js';
import { ParameterError } from '../../../callbacks/sampling-params.js';
import { InvalidRequestError } from '../../../src/errors/request-errors.js';
import { checkCloseOptions, checkGenerateOptions } from '../../../src/library/options/generate-options.js';
import { checkModelOptions } from '../../../src/library/options/model-options.js';
import { OPTIONS } from '../../../src/options/table.js';

type Row = [option: string, wrong: readonly unknown[], right: readonly unknown[], expected: string];

const signal = new AbortController().signal;
const whole = [1.5, Number.NaN, '1', null, true];

/** Every option of Skein.load: values that it refuses, values that it takes, and what it says that it expects. */
const MODEL: Row[] = [
  ['model', ['', 5, null], ['m'], 'a text that is not empty'],
  [
    'weights',
    ['int3', 1],
    ['auto', 'f32', 'bf16', 'int8', 'int4', 'stored'],
    'one of auto, f32, bf16, int8, int4, stored',
  ],
  ['outputWeights', ['int4', 1], ['auto', 'f32', 'bf16', 'int8'], 'one of auto, f32, bf16, int8'],
  ['kvCacheDtype', ['int4'], ['auto', 'f32', 'bf16', 'int8'], 'one of auto, f32, bf16, int8'],
  ['threads', [0, 1025, ...whole], [1, 1024], 'a whole number from 1 to 1024'],
  ['executor', ['gpu', 1], ['auto', 'native', 'tensorflow', 'wasm'], 'one of auto, native, tensorflow, wasm'],
  ['cacheDir', ['', 1], ['/tmp'], 'a text that is not empty'],
  [
    'batchingScheme',
    ['V2'],
    ['V1', 'InflightBatching'],
    'one of InflightFusedBatching, InflightBatching, V1',
  ],
  ['schedulerPolicy', ['FAIR'], ['MAX_UTILIZATION'], 'one of GUARANTEED_NO_EVICT, MAX_UTILIZATION'],
  ['maxActiveRequests', [0, 65537, ...whole], [1], 'a whole number from 1 to 65536'],
  ['maxBatchRequests', [0, ...whole], [1], 'a whole number from 1 to 65536'],
  ['maxBatchTokens', [0, ...whole], [1], 'a whole number of at least 1'],
  ['maxBeamWidth', [0, 1025, ...whole], [1, 8], 'a whole number from 1 to 1024'],
  ['maxInterTokenLatencyMs', [0, ...whole], [1, 50], 'a whole number of at least 1'],
  [
    'chunkingPolicy',
    ['FAIR'],
    ['SHORTEST_FIRST'],
    'one of FIRST_COME_FIRST_SERVED, EQUAL_PROGRESS, SHORTEST_FIRST',
  ],
  ['maxChunkMs', [0, ...whole], [1, 50], 'a whole number of at least 1'],
  ['speculate', ['yes', true], ['none', 'ngram', 'mtp'], 'one of none, ngram, mtp'],
  ['draftModel', ['', 5], ['m'], 'a text that is not empty'],
  ['maxDraftTokens', [0, ...whole], [1, 64], 'a whole number of at least 1'],
  ['maxQueuedRequests', [0, ...whole], [1], 'a whole number from 1 to 1000000'],
  ['maxQueuedRequestsPerKey', [0, ...whole], [1], 'a whole number from 1 to 1000000'],
  ['fairQueueing', [1, 'true', null], [true, false], 'true or false'],
  ['chunkedPrefill', [1, 'true', null], [true, false], 'true or false'],
  ['prefixCaching', [0], [true, false], 'true or false'],
  ['microBatchOverlap', ['on'], [true, false], 'true or false'],
  ['maxPromptTokens', [0, ...whole], [1], 'a whole number of at least 1'],
  ['maxContextTokens', [1, ...whole], [2], 'a whole number of at least 2'],
  ['kvCacheTokens', [-1, 0, ...whole], [1], 'a whole number of at least 1'],
  ['memoryFraction', [0, 1.1, '0.5'], [0.5, 1], 'a number above 0 and at most 1'],
  ['kvCacheSwapBytes', [-1, 0.5, '1G'], [0, 2 ** 40], 'a whole number from 0 to 9007199254740991'],
  ['kvCacheSwapMinPriority', [-1, 101, 0.5], [0, 100], 'a whole number from 0 to 100'],
  ['maxReturnedLogitsBytes', [-1, 0.5, '1G'], [0, 2 ** 40], 'a whole number from 0 to 9007199254740991'],
  ['tokensPerBlock', [4, 12, 8192, '32'], [8, 32, 4096], 'one of 8, 16, 32'],
  ['watchdogTimeoutSeconds', [-1, 0.5, 86_401], [0, 600], 'a whole number from 0 to 86400'],
  ['workerRestart', [true, 1, { delayMs: -1 }], [false, {}, { delayMs: 5 }], 'false or an object of waits'],
  ['executorModule', ['', 5], ['file:///a.mjs', new URL('file:///a.mjs')], 'the URL of a module'],
  ['onProgress', [true], [() => {}], 'a function'],
  ['signal', [true, {}], [signal], 'an AbortSignal'],
];

const GENERATE: Row[] = [
  ['maxDraftLen', [-1, ...whole], [0, 16], 'a whole number of at least 0'],
  ['prompt', [5, null, ['a']], ['', 'a'], 'a text'],
  ['messages', ['a', { role: 'user' }], [[{ role: 'user', content: 'a' }]], 'a list of messages'],
  ['promptTokens', ['a', 5], [[1], Int32Array.of(1)], 'an Int32Array or an array of token ids'],
  [
    'promptEmbeddings',
    [5, [[1, 2]], new Float32Array(2)],
    [[], [new Float32Array(2)]],
    'a list of Float32Arrays',
  ],
  [
    'positionIds',
    [5, [-1], [0.5], new Float32Array(1)],
    [[], [0, 5], Int32Array.of(3)],
    'an Int32Array or a list of positions',
  ],
  ['maxTokens', [-1, 0, ...whole], [1], 'a whole number of at least 1'],
  ['minTokens', [-1, ...whole], [0], 'a whole number of at least 0'],
  ['stop', ['', [''], [5], 5, null], ['a', ['a', 'b'], []], 'a text or a list of texts, none of them empty'],
  ['stopTokens', [5, [-1], [0.5], ['a']], [[], [0, 5]], 'a list of token ids'],
  ['includeStop', [1], [true], 'true or false'],
  ['ignoreEos', ['yes'], [true], 'true or false'],
  ['skipSpecialTokens', [0], [false], 'true or false'],
  ['logProbs', [-1, 0.5, true], [0, 20, 49152], 'a whole number of at least 0'],
  ['returnGenerationLogits', [1, 'yes'], [true, false], 'true or false'],
  ['returnContextLogits', [1, 'yes'], [true, false], 'true or false'],
  ['contextLogProbs', [-1, 0.5, true], [0, 20, 49152], 'a whole number of at least 0'],
  ['priority', [-0.1, 1.1, 'high'], [0, 0.5, 1], 'a number from 0 to 1'],
  ['queueKey', [1, null], ['', 'a'], 'a text'],
  ['queueWeight', [0, -1, 1001, '1'], [0.5, 1, 1000], 'a number above 0 and at most 1000'],
  ['cacheSalt', [1, -1n, 2n ** 64n], [0n, 2n ** 64n - 1n], 'a bigint from 0 to 18446744073709551615'],
  ['addGenerationPrompt', [1], [true], 'true or false'],
  ['timeLimitMs', [0, 0.5, '5'], [1, 60_000], 'a whole number of at least 1'],
  ['continueFinalMessage', [1], [true], 'true or false'],
  ['templateVariables', [5, ['a']], [{ a: 1 }], 'an object'],
  ['signal', [true, {}], [signal], 'an AbortSignal'],
  ['temperature', [-1, 101, Number.NaN, '1'], [0, 0.7, 100], 'a number from 0 to 100'],
  ['topK', [-1, 1.5], [0, 50], 'a whole number of at least 0'],
  ['topP', [-0.1, 1.1], [0, 1], 'a number from 0 to 1'],
  ['minP', [-0.1, 1.1], [0, 1], 'a number from 0 to 1'],
  ['repetitionPenalty', [0, 101], [1.1], 'a number from 0.0078125 to 100'],
  ['presencePenalty', [-101, 101], [-2, 2], 'a number from -100 to 100'],
  ['frequencyPenalty', [-101, 101], [-2, 2], 'a number from -100 to 100'],
  ['noRepeatNgramSize', [-1, ...whole], [0, 3], 'a whole number of at least 0'],
  [
    'logitBias',
    [{ 5: 1 }, new Map([[-1, 1]]), new Map([[5, Number.NaN]])],
    [new Map([[5, 1]]), new Map([[5, -Infinity]])],
    'a Map of token ids to numbers',
  ],
  ['embeddingBias', [[1], new Float64Array(1)], [new Float32Array(3)], 'a Float32Array'],
  [
    'badWords',
    ['x', [''], [[]], [[-1]]],
    [[], ['x', [1, 2]]],
    'a list of texts or lists of token ids, none of them empty',
  ],
  [
    'seed',
    [0.5, '1', Number.NaN, 2 ** 64, 2n ** 64n],
    [0, -1, 2 ** 40, 5n, 2n ** 64n - 1n],
    'a whole number of 64 bits, beyond 2^53 as a bigint',
  ],
];

/** Message of the error that a call throws; it must be one sentence. */
function refusal(call: () => void, type: new (...args: never[]) => Error): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(type);
    const { message } = error as Error;
    expect(message).toMatch(/^[^\n]+[.?]$/);
    expect(message).not.toMatch(/[.?]\.$|\.\. /);
    return message;
  }
  throw new Error('nothing was refused');
}

describe('the options of Skein.load', () => {
  const check = (options: unknown) => checkModelOptions(options);

  it.each(MODEL)('%s', (option, wrong, right, expected) => {
    for (const value of wrong) {
      const message = refusal(() => check({ model: 'm', [option]: value }), ParameterError);
      expect(message).toMatch(new RegExp(`^${option} is `));
      expect(message).toContain(`it must be ${expected}`);
    }
    for (const value of [...right, undefined]) {
      if (option !== 'model' || value !== undefined) check({ model: 'm', [option]: value });
    }
  });

  it('allow what the flags of the same names allow', () => {
    const shared = MODEL.filter(([option]) => option !== 'model').flatMap(([option, wrong, right]) => {
      const served = OPTIONS.find(({ name }) => name === option);
      return served === undefined ? [] : [{ option, wrong, right, values: served.values }];
    });
    expect(shared.length).toBeGreaterThan(12);
    for (const { option, wrong, right, values } of shared) {
      for (const value of right) expect(values.accepts(value), `${option} ${value}`).toBe(true);
      for (const value of wrong) expect(values.accepts(value), `${option} ${value}`).toBe(false);
    }
  });

  it.each([undefined, null, 'm', ['m']])('are an object, not %j', (options) => {
    expect(refusal(() => check(options), ParameterError)).toMatch(
      /Skein\.load needs an object of options, such as/,
    );
  });

  it('need a model', () => {
    expect(refusal(() => check({}), ParameterError)).toMatch(/needs the option model/);
  });

  it('are the known ones, whatever the value', () => {
    expect(refusal(() => check({ model: 'm', maxBatchTokns: undefined }), ParameterError)).toBe(
      'Skein.load has no option "maxBatchTokns"; did you mean maxBatchTokens?',
    );
    const far = refusal(() => check({ model: 'm', banana: 1 }), ParameterError);
    for (const [option] of MODEL) expect(far).toContain(option);
    for (const name of ['constructor', 'toString', '__proto__x']) {
      refusal(() => check({ model: 'm', [name]: 1 }), ParameterError);
    }
  });
});

describe.each(['generate', 'complete'])('the options of %s', (call) => {
  const check = (options: unknown) => checkGenerateOptions(call, options);

  it.each(GENERATE)('%s', (option, wrong, right, expected) => {
    for (const value of wrong) {
      const message = refusal(() => check({ [option]: value }), InvalidRequestError);
      expect(message).toMatch(new RegExp(`^${option} is `));
      expect(message).toContain(`it must be ${expected}`);
    }
    for (const value of [...right, undefined]) check({ [option]: value });
  });

  it.each([undefined, null, 'Once'])('are an object, not %j', (options) => {
    expect(refusal(() => check(options), InvalidRequestError)).toMatch(`${call} needs an object of options`);
  });

  it('are the known ones', () => {
    expect(refusal(() => check({ prompt: 'a', max_tokens: 5 }), InvalidRequestError)).toBe(
      `${call} has no option "max_tokens"; did you mean maxTokens?`,
    );
    if (call !== 'completeSeveral') {
      for (const several of [{ n: 3 }, { bestOf: 2 }, { beams: { width: 2 } }]) {
        expect(refusal(() => check({ prompt: 'a', ...several }), InvalidRequestError)).toBe(
          `${call} has no option "${Object.keys(several)[0]}"; completeSeveral has it, and gives several answers.`,
        );
      }
    }
    if (call !== 'generate') {
      expect(refusal(() => check({ prompt: 'a', stream: true }), InvalidRequestError)).toBe(
        `${call} has no option "stream"; generate gives an answer piece by piece.`,
      );
    }
    const far = refusal(() => check({ banana: 1 }), InvalidRequestError);
    for (const [option] of GENERATE) expect(far).toContain(option);
  });
});

describe('the options of close', () => {
  it('are abort alone', () => {
    checkCloseOptions({});
    checkCloseOptions({ abort: true });
    const unknown = refusal(() => checkCloseOptions({ aborted: true }), InvalidRequestError);
    expect(unknown).toBe('close has no option "aborted"; did you mean abort?');
  });
});

describe('the sentence about a number', () => {
  it('names the upper end where that is what the number is beyond', () => {
    const message = (kvCacheTokens: number) => {
      try {
        checkModelOptions({ model: 'x', kvCacheTokens });
      } catch (error) {
        return (error as Error).message;
      }
      return '';
    };
    expect(message(1e11)).toBe(
      'kvCacheTokens is 100000000000; it must be a whole number of at least 1 and at most 2147483647.',
    );
    expect(message(0.5)).toBe('kvCacheTokens is 0.5; it must be a whole number of at least 1.');
    expect(mustBe(wholeNumber(1, 9), 10)).toBe('a whole number from 1 to 9');
  });
});
