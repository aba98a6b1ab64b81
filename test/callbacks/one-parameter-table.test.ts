import { afterAll, beforeAll, describe, expect, expectTypeOf, it, vi } from 'vitest';
import type { InferTensor } from '../../callbacks/infer/infer-types.js';
import type { FieldOf, NamesOf, OptionsOf, TensorOf, ValuesOf } from '../../callbacks/request/parameter.js';
import type { TokenRequest } from '../../callbacks/token-request.js';
import { f32 } from '../../tools/support/loop-harness.js';

const TABLE = '../../callbacks/request/parameters.js';

/** A parameter that there is not. */
const made = {
  kind: 'number',
  tensor: 'nap_penalty',
  field: 'nap',
  range: [0, 9],
  routeRange: [0, 3],
  default: 0.5,
  neutralToBeams: [0.5],
  help: 'How much the sampler sleeps.',
  alias: { field: 'doze', help: 'Another name of nap.' },
  elsewhere: { nap_mode: [0] },
  ollama: { name: 'siesta', help: 'Default 2.', default: 2 },
  recommendedAs: { gguf: 'penalty_nap' },
  flag: { metavar: 'NAPS', help: 'sleeps so much' },
  form: { label: 'Naps', step: 0.25, empty: 'awake' },
} as const;
type Table = { napPenalty: typeof made };

beforeAll(() => {
  vi.resetModules();
  vi.doMock(TABLE, async (original) => {
    const { namedParameters } = await import('../../callbacks/request/parameter.js');
    const module = await original<typeof import('../../callbacks/request/parameters.js')>();
    const PARAMETERS = { ...module.PARAMETERS, napPenalty: made };
    return { ...module, PARAMETERS, NAMED_PARAMETERS: namedParameters(PARAMETERS) };
  });
});

afterAll(() => {
  vi.doUnmock(TABLE);
  vi.resetModules();
});

const request = { promptTokens: [1, 2], maxNewTokens: 3, napPenalty: 2 } as TokenRequest;
const napIn = (values: object | undefined) => (values as { napPenalty?: number } | undefined)?.napPenalty;

/** Posts a body to a server, and returns what reaches the engine with the answer. */
async function post(path: string, body: object) {
  const { say, toyServer } = await import('../src/support/toy-server.js');
  let seen: TokenRequest | undefined;
  const toy = toyServer((asked) => {
    seen = asked;
    return say('x');
  });
  const response = await toy.post(path, body);
  return { status: response.status, text: await response.text(), nap: napIn(seen) };
}

describe('a parameter that is added to the table', () => {
  it('has its types', () => {
    expectTypeOf<ValuesOf<Table>>().toEqualTypeOf<{ napPenalty: number }>();
    expectTypeOf<OptionsOf<Table>>().toEqualTypeOf<{ napPenalty?: number | undefined }>();
    expectTypeOf<FieldOf<typeof made>>().toEqualTypeOf<'nap'>();
    expectTypeOf<TensorOf<typeof made>>().toEqualTypeOf<'nap_penalty'>();
    expectTypeOf<NamesOf<Table, 'number'>>().toEqualTypeOf<'napPenalty'>();
    expectTypeOf<NamesOf<Table, 'flag'>>().toEqualTypeOf<never>();
  });

  it('goes as a tensor from a request of tokens to the engine, within its range', async () => {
    const { checkTokenFields } = await import('../../host/token-fields.js');
    const { inferenceRequestOf } = await import('../../host/token-inputs.js');
    const { validateRequest } = await import('../../engine/intake/request-validation.js');
    const limits = {
      vocabSize: 100,
      promptRowWidth: 4,
      turnsByGrid: false,
      maxSeqLen: 99,
      attendsToAll: true,
      maxBeamWidth: 2,
    };
    const validate = (asked: ReturnType<typeof inferenceRequestOf>) =>
      validateRequest(asked, { ...limits, maxTopLogProbs: 5 }, () => 1n);
    checkTokenFields(request);
    const asked = inferenceRequestOf(1n, request);
    expect(asked.inputs.nap_penalty).toEqual(f32(2));
    expect(napIn(validate(asked).sampling)).toBe(2);
    const { napPenalty: _, ...without } = request as TokenRequest & { napPenalty: number };
    const plain = inferenceRequestOf(1n, without);
    expect(plain.inputs).not.toHaveProperty('nap_penalty');
    expect(napIn(validate(plain).sampling)).toBe(0.5);
    const far = { ...request, napPenalty: 10 } as TokenRequest;
    const refusal = 'napPenalty is 10; it must be a number from 0 to 9.';
    expect(() => inferenceRequestOf(1n, far)).toThrow(refusal);
    const withBeams = inferenceRequestOf(1n, { ...request, temperature: 0, beams: { width: 2 } });
    expect(() => validate(withBeams)).toThrow('nap_penalty is refused together with beam_width');
  });

  it('crosses to a worker, and stands in the contract in JSON', async () => {
    const { packedRequest, unpackedRequest } = await import('../../cluster/nats/request-wire.js');
    const packed = packedRequest(request);
    expect(napIn(unpackedRequest(packed))).toBe(2);
    expect(() => unpackedRequest({ ...packed, napPenalty: 'x' })).toThrow('napPenalty');
    const { tokenRequestOf } = await import('../../src/library/contracts/token-request.js');
    expect(napIn(tokenRequestOf({ ...request }))).toBe(2);
    expect(() => tokenRequestOf({ ...request, napPenalty: 10 })).toThrow('napPenalty');
  });

  it('is a field of the routes, and in their description', async () => {
    const body = { model: 'toy', prompt: 'a', nap: 2 };
    expect(await post('/v1/completions', body)).toMatchObject({ status: 200, nap: 2 });
    const chat = { model: 'toy', messages: [{ role: 'user', content: 'a' }], nap: 1 };
    expect(await post('/v1/chat/completions', chat)).toMatchObject({ status: 200, nap: 1 });
    const message = { ...chat, max_tokens: 4 };
    expect(await post('/v1/messages', message)).toMatchObject({ status: 200, nap: 1 });
    expect((await post('/v1/completions', { ...body, nap: 4 })).text).toContain(
      "Invalid value for 'nap': expected at most 3.",
    );
    expect((await post('/v1/completions', { ...body, nap_mode: 2 })).text).toContain("use 'nap'.");
    const { toyServer } = await import('../src/support/toy-server.js');
    const api = await (await toyServer(() => []).get('/openapi.json')).text();
    expect(api).toContain('How much the sampler sleeps.');
    expect(api).toContain('Another name of nap.');
  });

  it("is an option of Ollama's, with the default there", async () => {
    const body = { model: 'toy', prompt: 'a', raw: true, stream: false };
    expect(await post('/api/generate', body)).toMatchObject({ status: 200, nap: 2 });
    const options = { siesta: 1 };
    expect(await post('/api/generate', { ...body, options })).toMatchObject({ status: 200, nap: 1 });
    expect((await post('/api/generate', { ...body, nap: 1 })).text).toContain("use 'options.siesta'.");
  });

  it('is an input of text models in KServe', async () => {
    const { textInputs } = await import('../../src/serving/texts/text-inputs.js');
    const inputs = textInputs(false);
    for (const name of ['nap_penalty', 'nap']) {
      expect(inputs).toContainEqual(expect.objectContaining({ name, data_type: 'TYPE_FP32' }));
    }
    const { GivenInputs } = await import('../../src/serving/texts/given-inputs.js');
    const { readGeneration } = await import('../../src/serving/texts/read-generation.js');
    const { FakeEngine } = await import('../src/support/fake-engine.js');
    const { toyModel } = await import('../src/support/toy-server.js');
    const input = (
      name: string,
      datatype: 'FP32' | 'INT32',
      data: Float32Array | Int32Array,
    ): InferTensor => ({
      name,
      datatype,
      shape: [data.length],
      data: new Uint8Array(data.buffer),
    });
    const given = new GivenInputs([
      input('input_ids', 'INT32', Int32Array.of(1, 2)),
      input('request_output_len', 'INT32', Int32Array.of(3)),
      input('nap', 'FP32', Float32Array.of(1.5)),
    ]);
    const read = await readGeneration(given, {
      model: toyModel(new FakeEngine(() => [])),
      adapters: null,
      maxLogProbs: 5,
      excludesInput: true,
      hold: undefined,
      endsByItself: true,
      caller: '',
      signal: undefined,
    });
    expect(napIn(read.request)).toBe(1.5);
    // It is one of the parameters with which a request draws.
    expect(read.request.temperature).toBeUndefined();
  });

  it('is an option of programs, a flag, and a name in their refusals', async () => {
    const options = await import('../../src/library/options/generate-options.js');
    const checkGenerateOptions: (call: string, options: object) => void = options.checkGenerateOptions;
    checkGenerateOptions('generate', { prompt: 'a', napPenalty: 9 });
    expect(() => checkGenerateOptions('generate', { prompt: 'a', napPenalty: 10 })).toThrow('napPenalty');
    const { settingsOfFlags } = await import('../../src/asking/sampling-settings.js');
    expect(settingsOfFlags({ nap: '2.5' })).toEqual({ nap: 2.5 });
    expect(() => settingsOfFlags({ nap: '4' })).toThrow('--nap is "4"; it must be a number from 0 to 3.');
    const { fieldOfOption, optionOfInput } = await import('../../src/request-vocabulary.js');
    expect(optionOfInput('nap_penalty')).toBe('napPenalty');
    expect(fieldOfOption('napPenalty')).toBe('nap');
  });

  it('is recommended by models, under its names in their files', async () => {
    const { RECOMMENDED_NAMES } = await import('../../callbacks/sampling-params.js');
    expect(RECOMMENDED_NAMES.nap).toEqual({ gguf: 'penalty_nap' });
    const { checkedSampling } = await import('../../src/generation/sampling-defaults.js');
    const found = { value: 3, from: 'GGUF', key: 'general.sampling.penalty_nap' } as const;
    expect(napIn(checkedSampling({ nap: found }).defaults)).toBe(3);
    expect(checkedSampling({ nap: { ...found, value: 10 } }).leftOut[0]).toContain('a number from 0 to 9');
  });

  it("is a field of the page's form, and a row of the documents", async () => {
    const { RARE_FIELDS } = await import('../../src/server/dashboard/page/chat/parameter-fields.js');
    expect(RARE_FIELDS.at(-1)).toEqual({
      name: 'nap',
      label: 'Naps',
      placeholder: 'awake',
      attributes: { min: '0', max: '3', step: '0.25' },
    });
    const { parameterFieldsTable, parameterTensorsTable } = await import('../../tools/parameter-tables.js');
    expect(parameterFieldsTable()).toContain('| `nap`, `doze` | 0 to 3 | 0.5 | How much the sampler sleeps.');
    expect(parameterTensorsTable()).toContain(
      '| `nap_penalty` | f32 | 0 to 9 | 0.5 | `napPenalty` | `nap` |',
    );
  });
});
