import * as fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import {
  type InferMessage,
  type MessageParameters,
  readInferMessage,
} from '../../../../../src/server/grpc/infer/infer-message.js';
import { INFERENCE_SCHEMA } from '../../../../../src/server/grpc/schema/inference-schema.js';
import { draws } from '../../../../support/scale.js';

// The library's own reader and writer are the judge of ours.
const types = protobuf.parse(INFERENCE_SCHEMA, { keepCase: true }).root;
const requestType = types.lookupType('inference.ModelInferRequest');
const encoded = (fields: object) => requestType.encode(requestType.fromObject(fields)).finish();

const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const parameter = fc.oneof(
  fc.record({ bool_param: fc.boolean() }),
  fc.record({ int64_param: int64.map(String) }),
  fc.record({ uint64_param: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String) }),
  fc.record({ string_param: text }),
  fc.record({ double_param: fc.double({ noNaN: true }) }),
  fc.constant({}),
);
const parameters = fc.dictionary(
  text.filter((name) => name !== '__proto__'),
  parameter,
  { maxKeys: 4 },
);
const contents = fc.record({ int_contents: fc.array(fc.integer(), { maxLength: 4 }) });
const request = fc.record(
  {
    model_name: text,
    model_version: text,
    id: text,
    parameters,
    inputs: fc.array(
      fc.record(
        {
          name: text,
          datatype: text,
          shape: fc.array(int64.map(String), { maxLength: 5 }),
          parameters,
          contents,
        },
        { requiredKeys: [] },
      ),
      { maxLength: 4 },
    ),
    outputs: fc.array(fc.record({ name: text, parameters }, { requiredKeys: [] }), { maxLength: 4 }),
    raw_input_contents: fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 4 }),
  },
  { requiredKeys: [] },
);

type LibraryParameters = Record<string, Record<string, unknown> & { parameter_choice?: string }>;

interface LibraryMessage {
  model_name: string;
  model_version: string;
  id: string;
  parameters: LibraryParameters;
  inputs: {
    name: string;
    datatype: string;
    shape: unknown[];
    parameters: LibraryParameters;
    contents: { int_contents: number[] } | null;
  }[];
  outputs: { name: string; parameters: LibraryParameters }[];
  raw_input_contents: Uint8Array[];
}

/** What the library reads, in the form of ours. */
function asOurs(bytes: Uint8Array): unknown {
  const read = requestType.toObject(requestType.decode(bytes), {
    longs: String,
    defaults: true,
    oneofs: true,
  }) as unknown as LibraryMessage;
  const ofMap = (map: LibraryParameters) =>
    Object.entries(map).map(([name, { parameter_choice: choice, ...value }]) => {
      const kind = choice?.replace('_param', '') ?? null;
      return [name, kind, choice === undefined ? null : String(value[choice])];
    });
  return {
    model: read.model_name,
    version: read.model_version,
    id: read.id,
    parameters: ofMap(read.parameters),
    inputs: read.inputs.map((input) => ({
      name: input.name,
      datatype: input.datatype,
      shape: input.shape.map(String),
      parameters: ofMap(input.parameters),
      contents: input.contents === null ? null : input.contents.int_contents,
    })),
    outputs: read.outputs.map((output) => ({ name: output.name, parameters: ofMap(output.parameters) })),
    raw: read.raw_input_contents.map((one) => Buffer.from(one).toString('hex')),
  };
}

function plain(message: InferMessage): unknown {
  const ofMap = (map: MessageParameters) =>
    Array.from(map, ([name, { kind, value }]) => [name, kind, kind === null ? null : String(value)]);
  const contentsType = types.lookupType('inference.InferTensorContents');
  const listOf = (bytes: Uint8Array) =>
    (contentsType.toObject(contentsType.decode(bytes), { defaults: true }) as { int_contents: number[] })
      .int_contents;
  return {
    ...message,
    parameters: ofMap(message.parameters),
    inputs: message.inputs.map((input) => ({
      ...input,
      shape: input.shape.map(String),
      parameters: ofMap(input.parameters),
      contents: input.contents === null ? null : listOf(input.contents),
    })),
    outputs: message.outputs.map((output) => ({ ...output, parameters: ofMap(output.parameters) })),
    raw: message.raw.map((one) => Buffer.from(one).toString('hex')),
  };
}

describe('a request of gRPC', () => {
  it('is read as the library reads it', () => {
    fc.assert(
      fc.property(request, (fields) => {
        const bytes = encoded(fields);
        expect(plain(readInferMessage(bytes))).toEqual(asOurs(bytes));
      }),
      { numRuns: draws(100) },
    );
  });

  it('is refused or read as the library would, whatever bytes it has', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc.tuple(request, fc.nat(), fc.integer({ min: 0, max: 255 })).map(([fields, at, byte]) => {
        const changed = Buffer.from(encoded(fields));
        if (changed.length > 0) changed[at % changed.length] = byte;
        return changed;
      }),
    );
    fc.assert(
      fc.property(bytes, (given) => {
        let ours: InferMessage;
        try {
          ours = readInferMessage(given);
        } catch (error) {
          // Ours is stricter: what has a field of ours in another type is no request, as is a text that is not UTF-8.
          expect((error as { code: string }).code).toMatch(/^SKEIN_(GRPC|INFER)$/);
          return;
        }
        // Elements are read later.
        if (ours.inputs.every(({ contents: list }) => list === null))
          expect(() => requestType.decode(given)).not.toThrow();
      }),
      { numRuns: draws(200) },
    );
  });

  it('keeps its tensors where they lie', () => {
    const bytes = encoded({ raw_input_contents: [Buffer.from('tensor')] });
    expect(readInferMessage(bytes).raw[0]!.buffer).toBe(bytes.buffer);
  });

  it('passes fields over that it does not know', () => {
    // Fields 100 to 103: a number, 64 bits, bytes, 32 bits.
    const unknown = Buffer.from('a00605a1060102030405060708a20602aabbad0601020304', 'hex');
    const bytes = Buffer.concat([unknown, encoded({ model_name: 'm' })]);
    expect(readInferMessage(bytes).model).toBe('m');
  });
});

describe('a request that is too much', () => {
  const repeated = (hex: string, count: number) => Buffer.from(hex.repeat(count), 'hex');

  it.each([
    ['inputs', repeated('2a00', 1025), 'more than 1024 inputs'],
    ['outputs', repeated('3200', 1025), 'more than 1024 outputs'],
    ['tensors', repeated('3a00', 1025), 'more than 1024 raw_input_contents'],
    ['sizes', encoded({ inputs: [{ shape: Array(33).fill(1) }] }), 'more than 32 sizes'],
    ['a list of a million sizes', encoded({ inputs: [{ shape: Array(1e6).fill(1) }] }), 'more than 32 sizes'],
    [
      'parameters',
      encoded({ parameters: Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`p${i}`, {}])) }),
      'more than 256 parameters',
    ],
    ['fields', repeated('0a00', 40_000), 'more than 32768 fields'],
    [
      'unknown fields within an input',
      encoded({}) && nested(repeated('a00600', 40_000)),
      'more than 32768 fields',
    ],
    [
      'texts',
      encoded({ parameters: { a: { string_param: 'x'.repeat(2 ** 20) } } }),
      'more than 1048576 bytes',
    ],
    ['a name', encoded({ model_name: 'x'.repeat(1025) }), 'model_name has 1025 characters'],
  ])('of %s is refused', (_, bytes, message) => {
    expect(() => readInferMessage(bytes)).toThrow(message);
  });

  it('of nested groups is no request', () => {
    expect(() => readInferMessage(repeated('a306', 1e6))).toThrow(
      'in a way that this protocol does not have',
    );
  });
});

function nested(bytes: Buffer): Buffer {
  const head = Buffer.from([0x2a, 0, 0, 0, 0]);
  let rest = bytes.length;
  for (let i = 1; i < 5; i++) {
    head[i] = (rest & 0x7f) | (i < 4 ? 0x80 : 0);
    rest >>= 7;
  }
  return Buffer.concat([head, bytes]);
}
