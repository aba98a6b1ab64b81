import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { factsOfStored } from '../../../../src/server/ollama/show.js';
import { ModelStore } from '../../../../src/serving/on-demand/model-store.js';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { freshFolders } from '../../../support/fresh-folders.js';

const makeFolder = freshFolders('skein-facts');

describe('what the files of a model say that is not loaded', () => {
  it('is read once, whoever asks, and again when the file has changed', async () => {
    const folder = makeFolder();
    copyFileSync(join(tinyModelPath('gguf'), 'tiny-llama.gguf'), join(folder, 'geese.gguf'));
    const store = new ModelStore(folder);
    const geese = (await store.find('geese'))!;
    const [one, other] = await Promise.all([factsOfStored(geese), factsOfStored({ ...geese })]);
    expect(one).toBe(other);
    expect(one.format).toBe('gguf');
    expect(await factsOfStored(geese)).toBe(one);
    writeFileSync(join(folder, 'geese.gguf'), 'no model');
    await expect(factsOfStored((await store.find('geese'))!)).rejects.toThrow(
      "The model 'geese' cannot be read: ",
    );
  });

  it('tells a fault with the name of the model, and nothing of the folder; then it is read again', async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, 'broken.gguf'), 'no model');
    const store = new ModelStore(folder);
    const broken = (await store.find('broken'))!;
    for (let i = 0; i < 2; i++) {
      const error = (await factsOfStored(broken).catch((reason: unknown) => reason)) as Error;
      expect(error.message).toMatch(/^The model 'broken' cannot be read: /);
      expect(error.message).not.toContain(folder);
    }
  });
});
