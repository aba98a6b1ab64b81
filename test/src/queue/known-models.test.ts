import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ModelCard } from '../../../cluster/nats/beat.js';
import { KnownModels } from '../../../src/queue/known-models.js';
import { KnownRecords } from '../../../src/queue/known-records.js';
import type { ServedCard } from '../../../src/queue/learned-models.js';
import { fetchFiles } from '../../../src/queue/model-files.js';
import { MemoryRecords } from '../../../src/server/files/memory-records.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const DAY_MS = 86_400_000;
const root = temporaryFolder('skein-known');

/** A model whose tokenizer has this text, in a folder of its own, with `numWorkers` workers. */
function model(name: string, numWorkers = 1, text = `tokens of ${name} `.repeat(1000)): ServedCard {
  const folder = join(root, createHash('sha256').update(`${name} ${text}`).digest('hex'));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'tokenizer.json'), text);
  const digest = createHash('sha256').update(text).digest('hex');
  const files = [{ name: 'tokenizer.json', bytes: Buffer.byteLength(text), digest }];
  const card: ModelCard = {
    ...{ name, aliases: [], text: digest.slice(0, 16), fileName: name, files, info: {} },
    engine: {
      ...{ vocabSize: 100, endTokenIds: [99], maxInputLen: 64, maxSeqLen: 64, maxSequences: 8 },
      ...{ maxNumTokens: 64, maxBeamWidth: 1, maxAttentionWindow: null, tokensPerBlock: 4 },
    },
    ...{ adapterRoom: null, adapters: [] },
  };
  return { card, folder, numWorkers, numWaiting: 0 };
}

/** A gateway that serves these models, and what it received. */
function gateway(records: MemoryRecords, served: ServedCard[], maxModels?: number) {
  const known: { card: ModelCard; read: (name: string, offset: number) => Promise<Uint8Array> }[] = [];
  const forgotten: string[] = [];
  const warnings: string[] = [];
  const models = new KnownModels({
    records: new KnownRecords(records, true),
    serving: () => ({
      served: () => served,
      onKnown: (card, read) => known.push({ card, read }),
      forget: (name) => forgotten.push(name),
    }),
    onWarning: (message) => warnings.push(message),
    ...(maxModels === undefined ? {} : { maxModels }),
  });
  return { models, known, forgotten, warnings };
}

const keysOf = async (records: MemoryRecords) =>
  (await records.list('models')).map(({ key }) => key).filter((key) => key !== 'models.epoch');

it('what one gateway serves, another one and a later one know, with its files', async () => {
  const records = new MemoryRecords();
  const served = model('org/chat');
  await gateway(records, [served]).models.look();
  const other = gateway(records, []);
  await other.models.look();
  expect(other.known.map(({ card }) => card)).toEqual([served.card]);
  const folder = join(root, 'fetched');
  await fetchFiles(folder, served.card.files, other.known[0]!.read);
  expect(readFileSync(join(folder, 'tokenizer.json'), 'utf8')).toBe(
    readFileSync(join(served.folder, 'tokenizer.json'), 'utf8'),
  );
  // Packed, since tokenizers repeat themselves.
  const [file] = await records.list('files');
  expect(file!.text.length).toBeLessThan(served.card.files[0]!.bytes / 2);
});

it('a record that somebody removes is forgotten where no worker has the model, and written again where one has', async () => {
  const records = new MemoryRecords();
  const idle = model('idle');
  const one = gateway(records, [idle, model('busy')]);
  await one.models.look();
  await one.models.look();
  idle.numWorkers = 0;
  for (const key of await keysOf(records)) await records.remove(key);
  await one.models.look();
  expect(one.forgotten).toEqual(['idle']);
  expect(await keysOf(records)).toEqual([expect.stringMatching(/^models\.busy-[0-9a-f]{8}$/)]);
});

it('a store that has lost all loses no model: what is served is written again', async () => {
  const records = new MemoryRecords();
  const idle = model('idle');
  const one = gateway(records, [idle]);
  await one.models.look();
  await one.models.look();
  idle.numWorkers = 0;
  for (const { key } of await records.list()) await records.remove(key);
  await one.models.look();
  expect(one.forgotten).toEqual([]);
  expect(await keysOf(records)).toHaveLength(1);
  expect(await records.list('files')).toHaveLength(1);
});

it('a record is written anew once a day, and for other texts, while there are workers', async () => {
  const records = new MemoryRecords();
  const kept = new KnownRecords(records, true);
  const first = model('m');
  const revisionAfter = async ({ card, folder }: ServedCard, nowMs: number) => {
    await kept.keep(card, folder, nowMs);
    const [key] = await keysOf(records);
    return (await records.get(key!))!.revision;
  };
  const begun = await revisionAfter(first, 0);
  expect(await revisionAfter(first, DAY_MS - 1)).toBe(begun);
  const nextDay = await revisionAfter(first, DAY_MS);
  expect(nextDay).toBeGreaterThan(begun);
  const replaced = model('m', 1, 'others');
  expect(await revisionAfter(replaced, DAY_MS + 1)).toBeGreaterThan(nextDay);
  expect((await kept.list()).models).toMatchObject([{ card: replaced.card, seenMs: DAY_MS + 1 }]);
});

it('no more models are kept than may be: the one without a worker for longest goes', async () => {
  const records = new MemoryRecords();
  const kept = new KnownRecords(records, true);
  for (const [i, name] of ['b', 'a'].entries()) {
    const { card, folder } = model(name);
    await kept.keep(card, folder, i);
  }
  await gateway(records, [model('a', 0), model('c')], 2).models.look();
  const { models } = await kept.list();
  expect(models.map(({ card }) => card.name).sort()).toEqual(['a', 'c']);
});

it('what is no record of a model is left alone, and a store that cannot be reached is told of once', async () => {
  const records = new MemoryRecords();
  await records.put('models.m-00000000', JSON.stringify({ version: 1, seenMs: 1, card: model('m').card }), 0);
  await records.put('models.x', '{', 0);
  await records.put('models.y', JSON.stringify({ version: 2 }), 0);
  const one = gateway(records, []);
  await one.models.look();
  expect(one.known).toEqual([]);
  records.list = () => Promise.reject(new Error('away'));
  await one.models.look();
  await one.models.look();
  expect(one.warnings).toEqual(['Models without workers cannot be kept: away']);
});
