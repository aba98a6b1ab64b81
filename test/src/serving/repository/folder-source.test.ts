import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ModuleModels } from '../support/module-models.js';

const models = new ModuleModels();
const X = '{name: X, data_type: TYPE_INT32, dims: [-1]}';
const IO = `input: [${X}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [-1]}]\n`;
const ECHO = 'export const execute = (all) => all.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));';

function put(path: string, text: string): void {
  const file = join(models.folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

beforeAll(async () => {
  await models.open('explicit', []);
});
afterAll(() => models.close());

describe('a folder that is no model says what is wrong, and where', () => {
  it.each([
    [
      'a backend that is misspelt',
      { 'config.yaml': `backend: modul\n${IO}`, '1/model.mjs': ECHO },
      "/config.yaml:1: backend is 'modul'; module may be meant: module, onnxruntime, tensorflow or skein is expected.",
    ],
    [
      'a platform that nobody has',
      { 'config.yaml': `platform: tensorrt_plan\n${IO}`, '1/model.plan': '' },
      "/config.yaml:1: platform is 'tensorrt_plan'; onnxruntime_onnx or tensorflow_savedmodel is expected; backend may be module,",
    ],
    [
      'no input',
      { 'config.yaml': 'backend: module\noutput: []', '1/model.mjs': ECHO },
      '/config.yaml: input is missing: the model has to have at least one input.',
    ],
    [
      'no configuration',
      { '1/model.mjs': ECHO },
      ', which has no config.yaml, config.pbtxt or config.json: input is missing: the model has to',
    ],
    [
      'a module by another name',
      { 'config.yaml': `backend: module\n${IO}`, '1/modell.mjs': ECHO },
      '/1 has no model.mjs, model.js or model.ts; there is modell.mjs',
    ],
    [
      'a named module that is not there',
      { 'config.yaml': `backend: module\ndefault_model_filename: net.mjs\n${IO}`, '1/model.mjs': ECHO },
      '/1 has no net.mjs; there is model.mjs',
    ],
    [
      'an ONNX file by another name',
      { '1/lin.onnx': '' },
      "its configuration names no backend (module, onnxruntime, tensorflow or skein), and the version's files tell none: model.onnx, model.savedmodel, model.mjs, model.js or model.ts is expected; there is lin.onnx",
    ],
    ['a version without files', { '1/.keep/x': '' }, 'model.ts is expected; there is .keep'],
    [
      'broken YAML',
      { 'config.yaml': `backend: module\ninput: [${X}\n`, '1/model.mjs': ECHO },
      /\/config\.yaml:3: Flow sequence in block collection must be sufficiently indented and end with a \]\.$/,
    ],
  ] as const)('%s', async (_, files, message) => {
    const name = `m${cases++}`;
    for (const [path, text] of Object.entries(files)) put(`${name}/${path}`, text);
    await expect(models.repository.load(name)).rejects.toThrow(message);
  });
});

let cases = 0;
