import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { readGguf } from '../../../models/checkpoints/gguf.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { readSafetensors } from '../../../models/checkpoints/safetensors.js';
import { Tokenizer, TokenizerError } from '../../../models/tokenizer/index.js';
import {
  GgufWriter,
  ggufBytes,
  type TypedValue,
  writeGgufParts,
} from '../../../tools/support/gguf-writer.js';
import { safetensorsBytes, safetensorsOf } from '../../../tools/support/safetensors-writer.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { draws } from '../../support/scale.js';
import {
  ggufTensors,
  TINY_CONFIG,
  TINY_GGUF_METADATA,
  tinyTensors,
  writeTinyModel,
} from '../../support/tiny-checkpoint.js';

const root = temporaryFolder('skein-fuzz');

/** Either it works or it is an error of a model's file; a RangeError for memory, a TypeError or a crash fails the property. */
function refusesOrReads(action: () => unknown): void {
  try {
    action();
  } catch (error) {
    if (!(error instanceof CheckpointError || error instanceof TokenizerError)) throw error;
  }
}

const tokenizerOfKind = (kind: string): Record<string, TypedValue> => ({
  'tokenizer.ggml.model': { type: 'string', value: kind },
  'tokenizer.ggml.scores': { type: 'array', of: 'f32', value: [0, 0, 0, -1, -2, -3] },
  'tokenizer.ggml.unknown_token_id': { type: 'u32', value: 0 },
  'tokenizer.ggml.cls_token_id': { type: 'u32', value: 1 },
  'tokenizer.ggml.seperator_token_id': { type: 'u32', value: 2 },
  'tokenizer.ggml.remove_extra_whitespaces': { type: 'bool', value: true },
  'tokenizer.ggml.precompiled_charsmap': { type: 'array', of: 'u8', value: [1, 2, 3] },
});

const gguf = ggufBytes(TINY_GGUF_METADATA, ggufTensors());
const safetensors = safetensorsBytes(tinyTensors());

/** Some bytes replaced, 64-bit words made huge, the end cut off. */
const mutations = (size: number) =>
  fc.record({
    bytes: fc.array(fc.tuple(fc.nat(size - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 8 }),
    words: fc.array(
      fc.tuple(
        fc.nat(size - 9),
        fc.constantFrom(0n, 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 40n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n),
      ),
      { maxLength: 2 },
    ),
    length: fc.oneof({ weight: 3, arbitrary: fc.constant(size) }, fc.nat(size)),
  });

function mutated(
  original: Buffer,
  change: { bytes: [number, number][]; words: [number, bigint][]; length: number },
): Buffer {
  const copy = Buffer.from(original);
  for (const [at, value] of change.bytes) copy[at] = value;
  for (const [at, value] of change.words) copy.writeBigUInt64LE(value, at);
  return copy.subarray(0, change.length);
}

describe('hostile checkpoints', () => {
  it('a changed GGUF is read or refused', () => {
    const path = join(root, 'fuzz.gguf');
    fc.assert(
      fc.property(mutations(gguf.length), (change) => {
        writeFileSync(path, mutated(gguf, change));
        refusesOrReads(() => openCheckpoint(path));
      }),
      { numRuns: draws(240) },
    );
  });

  it.each(['bert', 't5', 'gemma4'])(
    'a changed GGUF with a tokenizer of the kind %s is read or refused',
    (kind) => {
      const path = join(root, `${kind}.gguf`);
      const bytes = ggufBytes({ ...TINY_GGUF_METADATA, ...tokenizerOfKind(kind) }, ggufTensors());
      fc.assert(
        fc.property(mutations(bytes.length), (change) => {
          writeFileSync(path, mutated(bytes, change));
          refusesOrReads(() => new Tokenizer(openCheckpoint(path).tokenizer).encode('a b ab'));
        }),
        { numRuns: draws(400) },
      );
    },
  );

  it('a changed part of a split GGUF is read or refused', () => {
    const folder = join(root, 'split');
    mkdirSync(folder);
    writeGgufParts(join(folder, 'tiny'), TINY_GGUF_METADATA, ggufTensors(), 3);
    const parts = readdirSync(folder).map((name) => {
      const file = join(folder, name);
      return { file, bytes: readFileSync(file) };
    });
    const least = Math.min(...parts.map(({ bytes }) => bytes.length));
    fc.assert(
      fc.property(fc.nat(2), mutations(least), (which, { length, ...change }) => {
        const { file, bytes } = parts[which]!;
        const cut = length === least ? bytes.length : length;
        writeFileSync(file, mutated(bytes, { ...change, length: cut }));
        refusesOrReads(() => openCheckpoint(folder));
        writeFileSync(file, bytes);
      }),
      { numRuns: draws(160) },
    );
  });

  it('a changed GGUF header of every place is read or refused', () => {
    const path = join(root, 'sweep.gguf');
    for (let at = 0; at < 600; at++) {
      const copy = Buffer.from(gguf);
      copy[at]! ^= 0x80;
      writeFileSync(path, copy);
      refusesOrReads(() => readGguf(path));
    }
  });

  it('GGUF arrays of any depth, count and type are read or refused', () => {
    const path = join(root, 'arrays.gguf');
    const array = fc.tuple(fc.integer({ min: 0, max: 13 }), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }));
    fc.assert(
      fc.property(fc.array(array, { maxLength: 12 }), fc.uint8Array({ maxLength: 200 }), (arrays, rest) => {
        const writer = new GgufWriter().header(0, 1).string('k').u32(9);
        for (const [type, count] of arrays) writer.u32(type).u64(count % 4n === 0n ? count : count % 8n);
        writeFileSync(path, writer.raw(rest).bytes());
        refusesOrReads(() => readGguf(path));
      }),
      { numRuns: draws(200) },
    );
  });

  it('any metadata makes a model or an error', () => {
    const path = join(root, 'metadata.gguf');
    const value: fc.Arbitrary<TypedValue> = fc.oneof(
      fc.record({ type: fc.constant('u64' as const), value: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }),
      fc.record({ type: fc.constant('u32' as const), value: fc.integer({ min: 0, max: 64 }) }),
      fc.record({ type: fc.constant('f32' as const), value: fc.float() }),
      fc.record({ type: fc.constant('string' as const), value: fc.string() }),
      fc.record({ type: fc.constant('bool' as const), value: fc.boolean() }),
      fc.record({
        type: fc.constant('array' as const),
        of: fc.constant('i32' as const),
        value: fc.array(fc.nat(9)),
      }),
    );
    const changes = fc.dictionary(fc.constantFrom(...Object.keys(TINY_GGUF_METADATA)), value, { maxKeys: 3 });
    fc.assert(
      fc.property(changes, (change) => {
        writeFileSync(path, ggufBytes({ ...TINY_GGUF_METADATA, ...change }, ggufTensors()));
        refusesOrReads(() => openCheckpoint(path));
      }),
      { numRuns: draws(200) },
    );
  });

  it('a changed safetensors file is read or refused', () => {
    const path = join(root, 'fuzz.safetensors');
    fc.assert(
      fc.property(mutations(safetensors.length), (change) => {
        writeFileSync(path, mutated(safetensors, change));
        refusesOrReads(() => readSafetensors(path));
      }),
      { numRuns: draws(200) },
    );
  });

  it('any JSON as a safetensors header is read or refused', () => {
    const path = join(root, 'json.safetensors');
    const odd = fc.oneof(
      fc.nat(100),
      fc.double(),
      fc.constantFrom(-1, 2 ** 53, 2 ** 60, 1e300),
      fc.jsonValue(),
    );
    const entry = fc.record(
      {
        dtype: fc.oneof(fc.constantFrom('F32', 'BF16', 'I64', 'F99'), odd),
        shape: fc.array(odd),
        data_offsets: fc.array(odd),
      },
      { requiredKeys: [] },
    );
    const header = fc.dictionary(
      fc.oneof(fc.string(), fc.constant('__proto__')),
      fc.oneof(entry, fc.jsonValue()),
    );
    fc.assert(
      fc.property(header, fc.uint8Array({ maxLength: 64 }), (value, data) => {
        writeFileSync(path, safetensorsOf(JSON.stringify(value), data));
        refusesOrReads(() => readSafetensors(path));
      }),
      { numRuns: draws(200) },
    );
  });

  it('any config.json makes a model or an error', () => {
    const path = writeTinyModel(join(root, 'config'));
    const rope = fc.record({
      rope_type: fc.constantFrom('linear', 'dynamic', 'yarn', 'llama3', 'longrope'),
      factor: fc.double(),
    });
    const value = fc.oneof(
      fc.jsonValue(),
      fc.nat(64),
      fc.double(),
      rope,
      fc.constantFrom(2 ** 31, 2 ** 53, -1, 0),
    );
    const keys = fc.constantFrom(
      ...Object.keys(TINY_CONFIG),
      'head_dim',
      'rope_scaling',
      'rope_parameters',
      'hidden_act',
    );
    fc.assert(
      fc.property(fc.dictionary(keys, value, { maxKeys: 3 }), (change) => {
        writeFileSync(join(path, 'config.json'), JSON.stringify({ ...TINY_CONFIG, ...change }));
        refusesOrReads(() => openCheckpoint(path));
      }),
      { numRuns: draws(200) },
    );
  });
});
