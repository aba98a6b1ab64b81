import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { HubError } from '../../../src/errors/user-errors.js';
import { localModel } from '../../../src/hub/local-model.js';
import { hubSettings } from '../../../src/hub/settings.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const cacheFolder = temporaryFolder('skein-short-names');
for (const id of ['meta-llama--Llama-3.1-8B', 'acme--geese', 'acme--Llama-3.2-1B-GGUF'])
  mkdirSync(join(cacheFolder, `models--${id}`, 'blobs'), { recursive: true });
const settings = { ...hubSettings({}), cacheFolder, isOffline: true };
const NO_NAME = 'no such file or folder, and no name of the Hugging Face hub, which is ORG/NAME.';

it.each([
  ['llama3', 'Downloaded are acme/Llama-3.2-1B-GGUF, meta-llama/Llama-3.1-8B.'],
  ['llama3.2:1b', 'Downloaded are acme/Llama-3.2-1B-GGUF.'],
  ['Geese', 'Downloaded are acme/geese.'],
  ['llama4', 'One of this family is bartowski/Llama-3.2-1B-Instruct-GGUF.'],
  ['qwen3', 'One of this family is Qwen/Qwen3-0.6B-GGUF.'],
  ['falcon', 'A small one is HuggingFaceTB/SmolLM2-135M-Instruct.'],
])('%s is no name of a model, and others are proposed', async (name, proposal) => {
  const error = new HubError(`${name}: ${NO_NAME} ${proposal}`);
  await expect(localModel(name, { settings })).rejects.toEqual(error);
});

it.each(['./llama3', '/nowhere/llama3', 'llama3.gguf', 'a/b/c', '..'])(
  '%s is a path, whether it is there or not',
  async (path) => {
    expect(await localModel(path, { settings })).toBe(path);
  },
);
