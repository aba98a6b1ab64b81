import { describe, expect, it } from 'vitest';
import type { InferOrigin, InferResponse, InferTensor } from '../../../../callbacks/infer/infer-types.js';
import { parseModelConfig } from '../../../../models/repository/read-model-config.js';
import type { TextModel } from '../../../../src/generation/text-model.js';
import { Detokenizing, detokenizerPartTensors } from '../../../../src/serving/parts/detokenizer-part.js';
import { plannedPart } from '../../../../src/serving/parts/load-part.js';
import { partConfig, partOf } from '../../../../src/serving/parts/part-config.js';
import { PartModel } from '../../../../src/serving/parts/part-model.js';
import { textsOf } from '../../../../src/serving/texts/tensor-values.js';
import { FakeModel, fakeConfig } from '../../server/kserve/support/fake-models.js';

const written = (text: string) => parseModelConfig(text, 'config.yaml', 'yaml');
const CONFIG =
  'backend: skein\nparameters: {part: {string_value: detokenizer}, part_of: {string_value: llm}}\n';

/** Tokens are bytes; what is no whole character waits. */
const model = {
  codec: {
    createDetokenizer: () => {
      const decoder = new TextDecoder();
      return {
        push: (tokens: readonly number[]) => decoder.decode(Uint8Array.from(tokens), { stream: true }),
        flush: () => decoder.decode(),
      };
    },
  },
} as unknown as TextModel;

function detokenizer(isDecoupled: boolean): PartModel {
  const policy = `model_transaction_policy: {decoupled: ${isDecoupled}}\n`;
  const config = partConfig(written(CONFIG + policy), { name: 'd', folder: 'd' }, detokenizerPartTensors());
  const work = new Detokenizing(() => model, isDecoupled);
  return new PartModel({ config, version: '1', modelDirectory: '', work });
}

const int32 = (name: string, shape: readonly number[], values: readonly number[]): InferTensor => ({
  name,
  datatype: 'INT32',
  shape,
  data: new Uint8Array(Int32Array.from(values).buffer),
});
const words = (...texts: string[]): InferTensor => ({
  name: 'STOP_WORDS',
  datatype: 'BYTES',
  shape: [1, texts.length],
  data: Buffer.concat(texts.flatMap((text) => [Buffer.from([text.length, 0, 0, 0]), Buffer.from(text)])),
});
const bytes = (text: string) => [...Buffer.from(text)];
const batch = (...rows: readonly (readonly number[])[]) =>
  int32('TOKENS_BATCH', [1, rows.length, rows[0]!.length], rows.flat());
const finish = (...codes: number[]) => int32('FINISH_REASONS', [1, codes.length], codes);
const lengths = (...numbers: number[]) => int32('SEQUENCE_LENGTH', [1, numbers.length], numbers);

function ask(
  part: PartModel,
  inputs: readonly InferTensor[],
  origin?: InferOrigin,
): Promise<InferResponse[]> {
  const fields = { id: '', outputs: null, parameters: {}, sequence: null, priority: 0, timeoutUs: 0 };
  return new Promise((resolve, reject) => {
    const responses: InferResponse[] = [];
    const on = {
      response: (one: InferResponse) => void responses.push(one),
      end: () => resolve(responses),
      fail: reject,
    };
    part.infer({ ...fields, inputs, origin }, on);
  });
}
/** Texts by the names of their outputs; null: there is no response. */
async function told(...asked: Parameters<typeof ask>): Promise<Record<string, string[]> | null> {
  const [response] = await ask(...asked);
  if (response === undefined) return null;
  const texts = response.outputs.filter(({ datatype }) => datatype === 'BYTES');
  return Object.fromEntries(texts.map((output) => [output.name, textsOf(output)]));
}

describe('the detokenizer', () => {
  it('makes the text of whole answers, row by row, without what is behind their lengths', async () => {
    const rows = batch(bytes('hello'), bytes('you__'));
    expect(await told(detokenizer(false), [rows, lengths(5, 3)])).toEqual({ OUTPUT: ['hello', 'you'] });
    expect(await told(detokenizer(false), [rows, lengths(5, 3), finish(3, 1)])).toEqual({
      OUTPUT: ['hello', 'you'],
      FINISH_REASON: ['length', 'stop'],
    });
  });

  it('keeps half a character of an origin until its next tokens come, and tells nothing of it', async () => {
    const part = detokenizer(true);
    const origin = { depth: 1 };
    const [first, second, third] = bytes('あ');
    expect(await told(part, [batch([first!, second!]), lengths(2), finish(0)], origin)).toBeNull();
    expect(await told(part, [batch([third!]), lengths(3), finish(0)], origin)).toEqual({ OUTPUT: ['あ'] });
    expect(await told(part, [batch([first!]), lengths(4), finish(3)], origin)).toEqual({
      OUTPUT: ['\ufffd'],
      FINISH_REASON: ['length'],
    });
    expect(() =>
      part.infer({ inputs: [batch([65]), finish(0)], origin, outputs: null } as never, null as never),
    ).toThrow('sequence 0 has ended; it takes no more tokens');
    expect(part.activity().running).toBe(0);
  });

  it('answers each request where it is not decoupled', async () => {
    const origin = { depth: 1 };
    const [first, ...rest] = bytes('é');
    const part = detokenizer(false);
    expect(await told(part, [batch([first!]), finish(0)], origin)).toEqual({ OUTPUT: [''] });
    expect(await told(part, [batch(rest), finish(3)], origin)).toMatchObject({ OUTPUT: ['é'] });
  });

  it('cuts a stop word off wherever its tokens come, and keeps sequences and origins apart', async () => {
    const part = detokenizer(true);
    const origins = [{ depth: 1 }, { depth: 1 }];
    const index = (one: number) => int32('SEQUENCE_INDEX', [1, 1], [one]);
    const ask = (text: string, at: number, code = 0, more: InferTensor[] = []) =>
      told(part, [batch(bytes(text)), finish(code), index(at), ...more], origins[0]);
    expect(await ask('ab en', 0, 0, [words('end')])).toEqual({ OUTPUT: ['ab '] });
    expect(await ask('en', 1)).toBeNull();
    expect(await told(part, [batch(bytes('end')), finish(0)], origins[1])).toEqual({ OUTPUT: ['end'] });
    expect(await ask('d', 0, 2)).toEqual({ OUTPUT: [''], FINISH_REASON: ['stop'] });
    expect(await ask('ter', 1, 3)).toEqual({ OUTPUT: ['enter'], FINISH_REASON: ['length'] });
  });

  it('hands other tensors through, and with them tells of tokens that have no text', async () => {
    const probs: InferTensor = {
      name: 'OUTPUT_LOG_PROBS',
      datatype: 'FP32',
      shape: [1, 1, 1],
      data: new Uint8Array(Float32Array.of(-1).buffer),
    };
    const [first] = bytes('é');
    const [response] = await ask(detokenizer(true), [batch([first!]), finish(0), probs], { depth: 1 });
    expect(response!.outputs.map(({ name }) => name)).toEqual(['OUTPUT', 'OUT_OUTPUT_LOG_PROBS']);
    expect(response!.outputs[1]!.data).toBe(probs.data);
  });

  it('refuses rows that nobody has so many of, and lists of other lengths', () => {
    const part = detokenizer(false);
    const refusal = (inputs: readonly InferTensor[]) => () =>
      part.infer({ inputs, outputs: null } as never, null as never);
    expect(refusal([int32('TOKENS_BATCH', [1, 1_000_000, 0], [])])).toThrow(
      'has 1000000 rows; at most 128 are taken',
    );
    expect(refusal([batch([65], [66]), finish(1)])).toThrow(
      "'FINISH_REASONS' has 1 numbers and 'TOKENS_BATCH' 2 rows",
    );
    expect(refusal([batch([65]), lengths(1, 2)])).toThrow("'SEQUENCE_LENGTH' has 2 numbers");
  });
});

describe('the configuration of a part', () => {
  const tensors = new FakeModel(fakeConfig({ name: 'tensors', type: 'TYPE_FP32', dims: [1] }));
  const directory = { find: () => tensors, isReady: (name: string) => name === 'tensors' };
  const plan = (text: string) => () => plannedPart('p', 'p', written(text), directory);
  const of = (parameters: string, more = '') => `backend: skein\nparameters: {${parameters}}\n${more}`;
  const PART = 'part: {string_value: engine}';
  const OF = 'part_of: {string_value: llm}';

  it('says what it is a part of', () => {
    expect(partOf(written(CONFIG))).toBe('llm');
    expect(partOf(written('backend: skein\n'))).toBeNull();
    expect(partOf(written('backend: module\nparameters: {part: {string_value: engine}}\n'))).toBeNull();
  });

  it.each([
    [
      of(`part: {string_value: encoder}, ${OF}`),
      /is 'encoder'; one of tokenizer, engine, detokenizer is expected/,
    ],
    [of(PART), /part_of.*is missing; the name of a model that generates text is expected/],
    [of(`${PART}, ${OF}, part_off: {string_value: x}`), /part_off.*did you mean 'part_of'/],
    [
      of(`${PART}, ${OF}, exclude_input_in_output: {string_value: yes}`),
      /is 'yes'; true or false is expected/,
    ],
    [of(`${PART}, ${OF}`, 'max_batch_size: 8\n'), /max_batch_size is 8; 1 is expected/],
    [of(`${PART}, ${OF}`, 'instance_group: [{count: 2}]\n'), /instance_group is not taken/],
    [of(`${PART}, ${OF}`, 'dynamic_batching: {}\n'), /dynamic_batching is not taken/],
    [
      of(`${PART}, ${OF}`, 'output: [{name: X, data_type: TYPE_FP32, dims: [1]}]\n'),
      /'X', which the model's file does not have/,
    ],
    [
      of(`part: {string_value: tokenizer}, ${OF}`, 'model_transaction_policy: {decoupled: true}\n'),
      /is not decoupled/,
    ],
    [of(`${PART}, ${OF}`), "'p' is a part of 'llm', which is not loaded"],
    [of(`${PART}, part_of: {string_value: tensors}`), "'p' is a part of 'tensors', which generates no text"],
  ] as const)('is refused where it is wrong (%#)', (text, message) => {
    expect(plan(text)).toThrow(message);
  });
});
