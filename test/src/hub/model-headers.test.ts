import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { HubError } from '../../../src/errors/user-errors.js';
import { fetchHeaders } from '../../../src/hub/model-headers.js';
import type { TypedValue } from '../../../tools/support/gguf-writer.js';
import { safetensorsOf } from '../../../tools/support/safetensors-writer.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { FakeHub, filesOf, type HubFile } from '../../support/fake-hub.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { writeQuantizedModel } from '../../support/quantized-models.js';
import { ggufTensors, tinyTensors, writeTinyGguf, writeTinyModel } from '../../support/tiny-checkpoint.js';

const makeFolder = freshFolders('skein-headers');
const ID = 'skein-tests/headers';
let hub: FakeHub;
afterEach(() => hub.close());

async function fetched(files: ReadonlyMap<string, HubFile>, change: (hub: FakeHub) => void = () => {}) {
  hub = await FakeHub.start(ID, files);
  change(hub);
  const folder = makeFolder();
  const settings = { endpoint: hub.endpoint, token: hub.token, cacheFolder: makeFolder(), isOffline: false };
  const options = { settings, revision: 'main', fetch, retryDelayMs: 1 };
  return { folder, ...(await fetchHeaders({ id: ID, quant: null }, folder, options)) };
}

/** What is read of a checkpoint, without what depends on its place and times. */
const contentOf = (path: string, hasWeights = true) => {
  const { config, tensors, leftAside, remarks, tokenizer } = openCheckpoint(path, { hasWeights });
  const places = [...tensors.values()].map((tensor) =>
    JSON.stringify(tensor, (key, value) => (key === 'file' ? basename(value) : value)),
  );
  return { config, places, leftAside, remarks, tokenizer };
};

/** The file with a header that is longer than what is asked for at first, so that no weights come with it. */
function withLongHeader(bytes: Buffer): Buffer {
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + length));
  const text = JSON.stringify({ ...header, __metadata__: { format: 'pt', note: 'long '.repeat(100_000) } });
  return safetensorsOf(text, bytes.subarray(8 + length));
}

describe('the headers of a model of the hub', () => {
  it.each(['gqa', 'qwen3moe', 'gemma3-gguf', 'bert-mean'])('describe %s as its files do', async (name) => {
    const files = filesOf(tinyModelPath(name));
    const { path, remote, folder } = await fetched(files, (one) => {
      one.token = 'secret';
    });
    expect(remote.commit).toBe(hub.commit);
    expect(remote.files).toBe(readdirSync(folder).length);
    const own = /\.gguf$/.test(path)
      ? join(tinyModelPath(name), path.slice(folder.length + 1))
      : tinyModelPath(name);
    expect(contentOf(path)).toEqual(contentOf(own));
  });

  it('are a small part of large files, which take no space here', async () => {
    // A layer beyond the model's, which is left aside.
    const large = { name: 'blk.2.attn_norm.weight', shape: [8_388_608], data: new Uint8Array(33_554_432) };
    const description: TypedValue = { type: 'string', value: 'long '.repeat(1_048_576) };
    const file = writeTinyGguf(join(makeFolder(), 'model.gguf'), {
      metadata: { 'general.description': description },
      tensors: [...ggufTensors(), large],
    });
    const { path, remote } = await fetched(
      new Map([['model.gguf', { content: readFileSync(file), isLarge: true }]]),
    );
    expect(remote).toMatchObject({ files: 1, bytes: statSync(file).size });
    // The header is longer than what is asked for at first.
    expect(hub.sent.map(({ start }) => start)).toEqual([0, 4 * 1024 * 1024]);
    expect(hub.bytesSent.get('model.gguf')).toBe(16 * 1024 * 1024);
    expect(statSync(path).size).toBe(remote.bytes);
    expect(512 * statSync(path).blocks).toBeLessThan(remote.bytes / 2);
    expect(contentOf(path)).toEqual(contentOf(file));
  });

  it('have what tells an output layer from the embedding', async () => {
    const output = { name: 'lm_head.weight', shape: [6, 8], data: new Uint8Array(6 * 8 * 4).fill(1) };
    const folder = writeTinyModel(makeFolder(), { tensors: [...tinyTensors(), output] });
    const { path } = await fetched(filesOf(folder));
    const { remarks } = contentOf(path);
    expect(remarks).toEqual(contentOf(folder).remarks);
    expect(remarks[0]).toMatch(/^lm_head\.weight differs from the embedding/);
  });

  it.each(['gptq', 'gptq-order', 'ct-int4'])(
    'have what tells how %s is read, without zero points and orders',
    async (name) => {
      const model = writeQuantizedModel(makeFolder(), name);
      const file = join(model, 'model.safetensors');
      writeFileSync(file, withLongHeader(readFileSync(file)));
      const { path } = await fetched(filesOf(model));
      expect(hub.bytesSent.get('model.safetensors')).toBeLessThan(statSync(file).size);
      expect(contentOf(path, false)).toEqual(contentOf(model));
    },
  );

  it('come from a hub without ranges, and again after faults that pass', async () => {
    const files = filesOf(tinyModelPath('gqa'));
    const { path } = await fetched(files, (one) => {
      one.knowsRanges = false;
      one.troubles.push(
        { path: 'model.safetensors', status: 503 },
        { path: 'model.safetensors', cutAfter: 10 },
      );
    });
    expect(contentOf(path)).toEqual(contentOf(tinyModelPath('gqa')));
  });

  it('say that there is none', async () => {
    const files = filesOf(tinyModelPath('gqa'));
    await expect(
      fetched(files, (one) => {
        for (let i = 0; i < 3; i++) one.troubles.push({ path: 'model.safetensors', status: 500 });
      }),
    ).rejects.toThrow(`${ID}/model.safetensors could not be read in 3 attempts (the hub answers 500).`);
    await hub.close();
    await expect(
      fetched(files, (one) => one.troubles.push({ path: 'model.safetensors', status: 403 })),
    ).rejects.toThrow(HubError);
  });

  it('of a file that is none are named when it is opened', async () => {
    const files = new Map(filesOf(tinyModelPath('gqa')));
    files.set('model.safetensors', { content: Buffer.alloc(1000, 0xff), isLarge: true });
    const { path } = await fetched(files);
    expect(() => openCheckpoint(path)).toThrow(/model\.safetensors: the header claims/);
  });
});
