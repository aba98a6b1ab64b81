import { describe, expect, it } from 'vitest';
import { SharedTensors } from '../../../callbacks/shared-tensors.js';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import { type Packable, pack, unpack } from '../../../cluster/nats/packet.js';
import { packedRequest, unpackedRequest } from '../../../cluster/nats/request-wire.js';
import { inferenceRequestOf } from '../../../host/token-inputs.js';

const across = (request: TokenRequest) => unpackedRequest(unpack(pack(packedRequest(request) as Packable)));

/** Every field that crosses. */
const FULL: Required<
  Omit<
    TokenRequest,
    | 'signal'
    | 'loraTaskId'
    | 'adapter'
    | 'queueKey'
    | 'queueWeight'
    | 'engineFingerprint'
    | 'shared'
    | 'joinedEmbeddings'
    | 'sentPictures'
    | 'trace'
  >
> = {
  promptTokens: [1, 2, 300],
  maxNewTokens: 7,
  promptEmbeddings: [Float32Array.of(0.1, 2), Float32Array.of(-1, Number.NaN)],
  imageGrids: [[0, 1, 1]],
  positionIds: [0, 1, 2],
  endTokenIds: [5, 6],
  stopWords: [[7], [8, 9]],
  badWords: [[3, 4]],
  allowedTokens: [1, 2, 3],
  dryBreakers: [[11]],
  reasoningBudget: { tokens: 4, endToken: 9 },
  logitBias: new Map([
    [4, -0.25],
    [5, Number.NEGATIVE_INFINITY],
  ]),
  embeddingBias: Float32Array.of(1, 0, -1),
  returnLogProbs: true,
  topLogProbs: 3,
  returnGenerationLogits: true,
  returnContextLogits: true,
  returnContextLogProbs: true,
  topContextLogProbs: 2,
  returnContextProgress: true,
  numSequences: 2,
  firstSequenceIndex: 1,
  knownOutputIds: [[1, 2], []],
  beams: { width: 1, lengthPenalty: 0.5, earlyStopping: 'never' },
  streaming: true,
  priority: 0.75,
  timeLimitMs: 1234.5,
  cacheSalt: 2n ** 64n - 1n,
  adapterName: 'a',
  retention: { ranges: [{ start: 0, priority: 80, durationMs: 5 }], generated: { priority: 1 } },
  logitsPostProcessor: 'p',
  draftTokens: [1, 2],
  draftLogits: [Float32Array.of(1, 2), Float32Array.of(3, 4)],
  maxDraftLen: 3,
  guide: { type: 'json_schema', guide: '{"type":"object"}' },
  label: 'client',
  clientId: 17n,
  temperature: 0.7,
  topK: 3,
  topP: 0.9,
  minP: 0.1,
  repetitionPenalty: 1.1,
  presencePenalty: 0.1,
  frequencyPenalty: 0.2,
  penaltyLastN: 64,
  noRepeatNgramSize: 3,
  minLength: 2,
  typicalP: 0.9,
  topNSigma: 1,
  xtcProbability: 0.5,
  xtcThreshold: 0.2,
  dynatempRange: 0.1,
  dynatempExponent: 1.5,
  temperatureLast: true,
  mirostat: 2,
  mirostatTau: 4,
  mirostatEta: 0.2,
  dryMultiplier: 0.8,
  dryBase: 1.5,
  dryAllowedLength: 3,
  dryPenaltyLastN: 100,
  seed: 2n ** 63n + 1n,
};

/** Values that would cost more than their bytes, or that no code expects. */
const ODD: [name: string, value: unknown, form: string][] = [
  ['badWords', [{ length: 1e9 }], 'words'],
  ['stopWords', { length: 3 }, 'words'],
  ['dryBreakers', ['abc'], 'words'],
  ['stopWords', [[1, null]], 'words'],
  ['endTokenIds', { length: 1e9 }, 'ids'],
  ['maxNewTokens', '9', 'number'],
  ['topK', null, 'number'],
  ['streaming', 'x', 'flag'],
  ['label', { toString: 1 }, 'text'],
  ['guide', { type: 'regex', guide: { length: 1e9 } }, 'guide'],
  ['beams', { width: '5' }, 'beams'],
  ['beams', { width: 2, earlyStopping: 'x' }, 'beams'],
  ['reasoningBudget', {}, 'budget'],
  ['retention', { ranges: { length: 1e9 } }, 'retention'],
  ['retention', { generated: 5 }, 'retention'],
  ['promptEmbeddings', [new Float32Array(1000), new Float32Array(0)], 'rows'],
  ['draftLogits', { length: 1e9 }, 'rows'],
];

describe('a request that crosses', () => {
  it('makes the tensors that it would have made where it came from, with every field', () => {
    expect(inferenceRequestOf(3n, across(FULL))).toEqual(inferenceRequestOf(3n, FULL));
  });

  it('loses no field but those that mean something only where it came from', () => {
    const given: TokenRequest = {
      ...FULL,
      signal: new AbortController().signal,
      loraTaskId: 4n,
      adapter: { moduleLayers: [], modules: [], maxRank: 0 } as never,
      queueKey: 'secret name',
      queueWeight: 3,
      shared: new SharedTensors(),
    };
    expect(Object.keys(across(given)).sort()).toEqual(Object.keys(FULL).sort());
  });

  it('has the fields that were given, and no others', () => {
    expect(across({ promptTokens: [1], maxNewTokens: 2 })).toEqual({
      promptTokens: Int32Array.of(1),
      maxNewTokens: 2,
    });
  });

  it.each([
    [null, 'A request is no object.'],
    [{ maxNewTokens: 3 }, 'A request has no promptTokens.'],
    [{ promptTokens: [1, 2] }, "The field promptTokens of a request is not of the form 'tokens'."],
    [{ promptTokens: Int32Array.of(1), seed: 3 }, "The field seed of a request is not of the form 'key'."],
    [{ promptTokens: Int32Array.of(1), seed: -3n }, "The field seed of a request is not of the form 'key'."],
    [
      {
        promptTokens: Int32Array.of(1),
        logitBias: { tokens: Int32Array.of(1), values: new Float64Array(2) },
      },
      'The field logitBias of a request has no tokens with as many values.',
    ],
    [
      { promptTokens: Int32Array.of(1), knownOutputIds: [[1]] },
      "The field knownOutputIds of a request is not of the form 'lists'.",
    ],
    ...ODD.map(([name, value, form]): [unknown, string] => [
      { promptTokens: Int32Array.of(1), [name]: value },
      `The field ${name} of a request is not of the form '${form}'.`,
    ]),
    [{ promptTokens: Int32Array.of(1), numSequences: 1e9 }, 'asks for 1000000000 sequences; 1 to 4096'],
    [{ promptTokens: Int32Array.of(1), beams: { width: 4097 } }, 'asks for 4097 sequences'],
    [{ promptTokens: Int32Array.of(1), numSequences: 1.5 }, 'asks for 1.5 sequences'],
    [
      {
        promptTokens: Int32Array.of(1),
        numSequences: 4096,
        knownOutputIds: [new Int32Array(4097), ...Array.from({ length: 4095 }, () => new Int32Array(0))],
      },
      'make a table of 4096 x 4097; at most 16777216 are taken.',
    ],
  ])('and is not one, %o, is refused', (packed, message) => {
    expect(() => unpackedRequest(packed)).toThrow(message);
  });

  it('is read without fields that nothing knows', () => {
    expect(unpackedRequest({ promptTokens: Int32Array.of(1), future: 1, shared: {}, __proto__: {} })).toEqual(
      {
        promptTokens: Int32Array.of(1),
      },
    );
  });
});
