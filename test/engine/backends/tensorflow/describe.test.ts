import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { BackendError } from '../../../../engine/backends/backend.js';
import { findBackend } from '../../../../engine/backends/find-backend.js';
import { readSavedModel } from '../../../../engine/backends/tensorflow/saved-model-file.js';
import { tensorflowBackend } from '../../../../engine/backends/tensorflow/tensorflow-backend.js';
import type { ModelConfig } from '../../../../models/repository/model-config.js';

const folder = mkdtempSync(join(tmpdir(), 'skein-saved-models-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fixtures = fileURLToPath(new URL('../../../fixtures/saved-models/', import.meta.url));

function filesOf(saved: string) {
  const versionDirectory = join(folder, saved, '1');
  mkdirSync(versionDirectory, { recursive: true });
  cpSync(join(fixtures, saved), join(versionDirectory, 'model.savedmodel'), { recursive: true });
  return { directory: join(folder, saved), versionDirectory, version: '1' };
}

const told = (saved: string, config: object = {}) =>
  tensorflowBackend.describe(filesOf(saved), config as Partial<ModelConfig>);

const parameters = (values: Record<string, string>) => ({
  parameters: Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, { string_value: value }]),
  ),
});

describe('the description of a SavedModel', () => {
  it('has inputs, outputs and batches of its signature, by name', async () => {
    expect(await told('affine')).toMatchObject({
      max_batch_size: 4,
      input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [3] }],
      output: [
        { name: 'total', dims: [1], reshape: { shape: [] } },
        { name: 'y', dims: [2] },
      ],
    });
    expect(await told('types')).toMatchObject({
      input: [
        ['f32', 'TYPE_FP32'],
        ['flag', 'TYPE_BOOL'],
        ['i32', 'TYPE_INT32'],
        ['i64', 'TYPE_INT64'],
        ['text', 'TYPE_STRING'],
        ['u8', 'TYPE_UINT8'],
      ].map(([name, data_type]) => ({ name, data_type, dims: [2] })),
    });
    expect((await told('whole')).max_batch_size).toBe(0);
  });

  it('takes no batches where the author wrote the dimension of the batch among the dims', async () => {
    const input = [{ name: 'x', data_type: 'TYPE_FP32', dims: [-1, 3] }];
    expect(await told('affine', { input })).toMatchObject({ max_batch_size: 0, input: [{ dims: [-1, 3] }] });
    expect(await told('affine', { input: [{ name: 'x', dims: [3] }] })).toMatchObject({ max_batch_size: 4 });
  });

  it('refuses batches where a size is fixed', async () => {
    await expect(told('whole', { max_batch_size: 2 })).rejects.toThrow(
      /^max_batch_size is 2, but 'factor' of the signature has the shape \[\]: for batches its first size has to be -1\.$/,
    );
  });

  it('is that of the signature and the graph which the parameters name', async () => {
    expect(await told('affine', parameters({ TF_SIGNATURE_DEF: 'twice' }))).toMatchObject({
      output: [{ name: 'y', dims: [3] }],
    });
    await expect(told('affine', parameters({ TF_SIGNATURE_DEF: 'thrice' }))).rejects.toThrow(
      /model\.savedmodel has no signature 'thrice'; it has 'serving_default', 'twice', which TF_SIGNATURE_DEF can name\.$/,
    );
    await expect(told('refused')).rejects.toThrow(
      "has no signature 'serving_default'; it has 'byte', 'half', 'rankless', 'wide', which",
    );
    expect(await told('tagged', parameters({ TF_GRAPH_TAG: 'tripled,serve' }))).toMatchObject({
      max_batch_size: 4,
    });
    await expect(told('tagged', parameters({ TF_GRAPH_TAG: 'gpu' }))).rejects.toThrow(
      /has no graph with the tags 'gpu'; it has 'serve' and 'serve,tripled', which TF_GRAPH_TAG can name\.$/,
    );
  });

  it.each([
    [
      'wide',
      "The input 'x' of the signature is of type float64; inputs of float32, int32, int64, uint8, bool and string can be",
    ],
    [
      'half',
      "The output 'y' of the signature is of type float16; outputs of float32, int32, int64, bool and string can be",
    ],
    ['byte', "The output 'y' of the signature is of type uint8; outputs of"],
    [
      'rankless',
      "The input 'x' of the signature may have any number of dimensions: a configuration has to say its dims.",
    ],
  ])('refuses what does not cross: %s', async (signature, message) => {
    await expect(told('refused', parameters({ TF_SIGNATURE_DEF: signature }))).rejects.toThrow(message);
  });

  it('takes dims from the configuration where the signature leaves them open', async () => {
    const config = {
      ...parameters({ TF_SIGNATURE_DEF: 'rankless' }),
      max_batch_size: 2,
      input: [{ name: 'x', dims: [5] }],
      output: [{ name: 'y', dims: [5] }],
    };
    expect(await told('refused', config)).toMatchObject({ input: [{ dims: [5] }], output: [{ dims: [5] }] });
  });

  it.each([
    [parameters({ TF_INIT_OPS_FILE: 'init.json' }), 'parameters.TF_INIT_OPS_FILE is of GraphDefs'],
    [parameters({ MAX_SESSION_SHARE_COUNT: '2' }), 'each instance is a process with a session of its own'],
    [{ platform: 'tensorflow_graphdef' }, 'save the model as a SavedModel, in the folder 1/model.savedmodel'],
  ])('refuses what Triton has beside that', async (config, message) => {
    await expect(told('affine', config)).rejects.toThrow(message);
  });
});

describe('a folder', () => {
  it('that is no SavedModel is refused with what it has', async () => {
    const empty = join(folder, 'empty');
    mkdirSync(empty);
    await expect(readSavedModel(empty)).rejects.toThrow(
      `${empty} is no SavedModel: a file saved_model.pb is expected; it has none.`,
    );
    writeFileSync(join(empty, 'saved_model.pbtxt'), '');
    await expect(readSavedModel(empty)).rejects.toThrow('it has the text form, saved_model.pbtxt');
  });

  it('is read or refused, whatever is wrong with its file', async () => {
    const whole = readFileSync(join(fixtures, 'affine/saved_model.pb'));
    const broken = join(folder, 'broken');
    mkdirSync(broken);
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 4 }),
        fc.nat(whole.length),
        async (changes, length) => {
          const bytes = Buffer.from(whole.subarray(0, length));
          for (const [at, byte] of changes) if (at < length) bytes[at] = byte;
          writeFileSync(join(broken, 'saved_model.pb'), bytes);
          await readSavedModel(broken).catch((error: unknown) => {
            refused++;
            expect(error).toBeInstanceOf(BackendError);
          });
        },
      ),
      { numRuns: 150 },
    );
    expect(refused).toBeGreaterThan(50);
  });
});

it('models are found by folder, platform and name; a GraphDef is refused by name', () => {
  expect(findBackend({}, ['model.savedmodel'])).toBe(tensorflowBackend);
  expect(findBackend({ platform: 'tensorflow_savedmodel' }, [])).toBe(tensorflowBackend);
  expect(() => findBackend({ platform: 'tensorflow_graphdef' }, [])).toThrow(
    'a GraphDef (tensorflow_graphdef',
  );
  expect(() => findBackend({}, ['model.graphdef'])).toThrow('a GraphDef (tensorflow_graphdef');
});

it('without TensorFlow it says how to have it', async () => {
  vi.stubEnv('SKEIN_CACHE_DIR', folder);
  vi.stubEnv('XDG_CACHE_HOME', folder);
  try {
    expect(await tensorflowBackend.problem()).toMatch(
      /^TensorFlow is not installed; run "skein setup tensorflow"/,
    );
  } finally {
    vi.unstubAllEnvs();
  }
});
