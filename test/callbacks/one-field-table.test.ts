import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { TokenRequest } from '../../callbacks/token-request.js';
import { i32, makeRequest } from '../../tools/support/loop-harness.js';

const TABLE = '../../callbacks/request/fields.js';

beforeAll(() => {
  vi.resetModules();
  vi.doMock(TABLE, async (original) => {
    const module = await original<typeof import('../../callbacks/request/fields.js')>();
    const made = {
      napLimit: { kind: 'count', min: 2, tensor: 'nap_limit', option: 'napLimit', field: 'max_naps' },
      napWords: { kind: 'words', tensor: 'nap_words' },
      napSalt: { kind: 'key', tensor: 'nap_salt', staysInGateway: true },
    };
    const REQUEST_FIELDS = { ...module.REQUEST_FIELDS, ...made };
    return { ...module, REQUEST_FIELDS, NAMED_FIELDS: Object.entries(REQUEST_FIELDS) };
  });
});

afterAll(() => {
  vi.doUnmock(TABLE);
  vi.resetModules();
});

const request = {
  promptTokens: [1, 2],
  maxNewTokens: 3,
  napLimit: 2,
  napWords: [[4, 5]],
  napSalt: 7n,
} as TokenRequest;
const changed = (fields: object) => ({ ...request, ...fields }) as TokenRequest;

describe('a field that is added to the table', () => {
  it('is checked by its kind and within its range, and becomes a tensor', async () => {
    const { checkTokenFields } = await import('../../host/token-fields.js');
    const { inferenceRequestOf } = await import('../../host/token-inputs.js');
    checkTokenFields(request);
    expect(() => checkTokenFields(changed({ napWords: 'x' }))).toThrow(
      'napWords is a text; an array of arrays of token ids is expected.',
    );
    const { inputs } = inferenceRequestOf(1n, request);
    expect(inputs.nap_limit).toEqual(i32(2));
    expect(inputs.nap_words).toEqual({ shape: [1, 2, 2], data: Int32Array.of(4, 5, 2, -1) });
    expect(inputs.nap_salt).toEqual({ shape: [1], data: BigUint64Array.of(7n) });
    expect(() => inferenceRequestOf(1n, changed({ napLimit: 1 }))).toThrow(
      'napLimit is 1; it must be an integer from 2 to 2147483647.',
    );
    expect(() => inferenceRequestOf(1n, changed({ napWords: [[]] }))).toThrow(
      'napWords holds a word without',
    );
    expect(() => inferenceRequestOf(1n, changed({ napSalt: -1n }))).toThrow(
      'napSalt is -1; it must be a bigint',
    );
  });

  it('is refused at once where no code writes its kind', async () => {
    const { REQUEST_FIELDS } = await import('../../callbacks/request/fields.js');
    const { writerOf } = await import('../../host/token-inputs.js');
    expect(writerOf('napLimit' as never, REQUEST_FIELDS.maxNewTokens)).toBeTypeOf('function');
    expect(() => writerOf('napMap' as never, { kind: 'bias', tensor: 'nap_map' })).toThrow(
      'There is no tensor of the kind bias of napMap.',
    );
  });

  it('is a tensor that the engine knows, with its type and shape', async () => {
    const { checkInputTensors } = await import('../../engine/intake/input-tensors.js');
    const sizes = { vocabSize: 9, promptRowWidth: 4, turnsByGrid: false };
    const { inputs } = makeRequest(1n, [1, 2], 3);
    expect(checkInputTensors({ ...inputs, nap_limit: i32(2) }, sizes)).toHaveProperty('nap_limit');
    expect(() =>
      checkInputTensors({ ...inputs, nap_limit: { shape: [2], data: Int32Array.of(2, 3) } }, sizes),
    ).toThrow('nap_limit has the shape');
    expect(() => checkInputTensors({ ...inputs, nap_words: i32(2) }, sizes)).toThrow('[1, 2, n] is expected');
  });

  it('crosses to a worker unless it stays, and stands in the contract in JSON', async () => {
    const { packedRequest, unpackedRequest } = await import('../../cluster/nats/request-wire.js');
    const packed = packedRequest(request);
    expect(unpackedRequest(packed)).toMatchObject({ napLimit: 2, napWords: [[4, 5]] });
    expect(packed).not.toHaveProperty('napSalt');
    expect(() => unpackedRequest({ ...packed, napLimit: 'x' })).toThrow('napLimit');
    const { tokenRequestOf } = await import('../../src/library/contracts/token-request.js');
    const { napSalt: _, ...json } = request as TokenRequest & { napSalt: bigint };
    expect(tokenRequestOf({ ...json, napSalt: '7' })).toMatchObject({ ...json, napSalt: 7n });
    expect(() => tokenRequestOf({ ...json, napLimit: 1 })).toThrow('napLimit');
  });

  it('has its names in the vocabulary', async () => {
    const { fieldOfOption, optionOfInput } = await import('../../src/request-vocabulary.js');
    expect(optionOfInput('nap_limit')).toBe('napLimit');
    expect(fieldOfOption('napLimit')).toBe('max_naps');
    expect(optionOfInput('nap_words')).toBeNull();
  });
});
