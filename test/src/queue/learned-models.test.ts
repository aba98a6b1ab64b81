import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { QueueGateway } from '../../../cluster/gateway/queue-gateway.js';
import { type ModelCard, modelKey } from '../../../cluster/nats/beat.js';
import { RosterPool } from '../../../cluster/nats/roster-pool.js';
import { LearnedModels } from '../../../src/queue/learned-models.js';
import { LoadingWorkers } from '../../../src/queue/loading-workers.js';
import { cardText } from '../../../src/queue/model-card.js';
import { TINY_TOKENIZER } from '../../support/tiny-checkpoint.js';

/** A bound for hangs. */
const WAIT_MS = 120_000;

const ENGINE: ModelCard['engine'] = {
  ...{ vocabSize: 100, endTokenIds: [99], maxInputLen: 64, maxSeqLen: 64, maxSequences: 8 },
  ...{ maxNumTokens: 64, maxBeamWidth: 1, maxAttentionWindow: null, tokensPerBlock: 4 },
};
const FILE = { name: 'tokenizer.json', bytes: 5, digest: 'of no bytes that come' };

/** A worker that reports itself. */
interface Told {
  id: string;
  pool: RosterPool;
  isLeaving: boolean;
}

const told = (id: string, model: ModelCard, pool = 'p'): Told => ({
  ...{ id, pool: new RosterPool(pool, model, false), isLeaving: false },
});

const beatOf = (name: string): Told => {
  const model: ModelCard = {
    ...{ name, aliases: [], fileName: name, files: [FILE], info: {}, engine: ENGINE },
    ...{ adapterRoom: null, adapters: [], text: cardText({ files: [FILE], engine: ENGINE, aliases: [] }) },
  };
  return told(`w-${name}`, model);
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'skein-learned-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Models of a gateway with these workers, whose files come when the test lets them. */
function setUp(maxModels?: number) {
  const asked: string[] = [];
  const warnings: string[] = [];
  const answers: ((bytes: Uint8Array) => void)[] = [];
  const gateway = { poolsOf: () => [], countsOf: () => ({ running: 0, waiting: 0 }) };
  const models = new LearnedModels({
    gateway: gateway as unknown as QueueGateway,
    folder,
    limits: { maxQueueSize: 1, fairQueueing: false },
    readFile: (worker) => {
      asked.push(worker);
      return new Promise((resolve) => answers.push(resolve));
    },
    bring: () => expect.fail('no files have come'),
    takeAway: async () => {},
    loading: new LoadingWorkers(),
    onWarning: (message) => warnings.push(message),
    ...(maxModels === undefined ? {} : { maxModels }),
  });
  return { models, asked, warnings, answers };
}

it('models are learned one after another, and a bad one holds up no other', async () => {
  const { models, asked, warnings, answers } = setUp();
  for (const name of ['a', 'b', 'a', 'c']) models.onBeat(beatOf(name));
  for (const [i, name] of ['a', 'b', 'c'].entries()) {
    await vi.waitFor(() => expect(asked).toHaveLength(i + 1), WAIT_MS);
    expect(asked.at(-1)).toBe(`w-${name}`);
    expect(warnings).toHaveLength(i);
    answers[i]!(new Uint8Array(5));
  }
  await vi.waitFor(() => expect(warnings).toHaveLength(3), WAIT_MS);
  expect(warnings[0]).toMatch(/^The model a of the worker w-a cannot be served: its tokenizer.json is not/);
  expect(models.starting).toEqual([]);
  // They are tried again later, and not at each beat.
  models.onBeat(beatOf('a'));
  expect(asked).toHaveLength(3);
});

it('no more models are waited for than may be served', async () => {
  const { models, asked, answers } = setUp(2);
  for (let i = 0; i < 150; i++) models.onBeat(beatOf(`flood${i}`));
  expect(models.starting).toEqual(['flood0', 'flood1']);
  for (const i of [0, 1]) {
    await vi.waitFor(() => expect(asked).toHaveLength(i + 1), WAIT_MS);
    answers[i]!(new Uint8Array(5));
  }
  await vi.waitFor(() => expect(models.starting).toEqual([]), WAIT_MS);
  expect(asked).toEqual(['w-flood0', 'w-flood1']);
});

const bytes = Buffer.from('{}');
const factsOf = (name: string, content: Buffer) => ({
  name,
  bytes: content.length,
  digest: createHash('sha256').update(content).digest('hex'),
});
const GOOD = factsOf('engine.json', bytes);
const TOKENIZER = Buffer.from(JSON.stringify(TINY_TOKENIZER));

/** A beat whose card fits these files. */
function beatWith(name: string, files: ModelCard['files'], changes: Partial<ModelCard> = {}): Told {
  const { id, pool } = beatOf(name);
  const text = cardText({ files, engine: ENGINE, aliases: [] });
  return told(id, { ...pool.model, files, text, ...changes });
}

/** Models whose files all come. @param file content of each @param workers those that are there */
function setUpWithFiles(file = bytes, workers: Told[] = []) {
  const warnings: string[] = [];
  const brought: string[] = [];
  const models = new LearnedModels({
    gateway: {
      poolsOf: () => workers.map(({ pool: { model } }) => ({ model, takers: { size: 1 } })),
      open: () => {},
    } as unknown as QueueGateway,
    folder,
    limits: { maxQueueSize: 1, fairQueueing: false },
    readFile: async () => file,
    bring: async ({ name }, start) => {
      if (workers.length > 0) await start();
      brought.push(name);
    },
    takeAway: async () => {},
    loading: new LoadingWorkers(),
    onWarning: (message) => warnings.push(message),
  });
  return { models, warnings, brought };
}

it('files lie in a folder of the gateway, by their content, whatever a model calls itself', async () => {
  const { models, warnings, brought } = setUpWithFiles();
  models.onBeat(beatWith('../../outside', [GOOD]));
  models.onBeat(beatWith('b', [GOOD, { ...GOOD, name: '../../outside' }]));
  await vi.waitFor(() => expect(brought).toHaveLength(2), WAIT_MS);
  // Equal files are there once.
  expect(readdirSync(folder)).toEqual([expect.stringMatching(/^[0-9a-f]{16,64}$/)]);
  expect(readdirSync(join(folder, readdirSync(folder)[0]!))).toEqual(['engine.json']);
  // A card that does not fit its files.
  models.onBeat(beatWith('c', [GOOD], { text: '../../outside' }));
  await vi.waitFor(() => expect(warnings.join()).toMatch(/^The model c .* does not fit together/), WAIT_MS);
});

it('workers of one model with different engines are told of once, until they are alike again', async () => {
  const withEngine = (id: string, fingerprint: string): Told => {
    const { pool } = beatWith('m', [factsOf('tokenizer.json', TOKENIZER)], { info: { fingerprint } });
    return told(id, pool.model, fingerprint);
  };
  const workers = [withEngine('w1', 'fp_a')];
  const { models, warnings, brought } = setUpWithFiles(TOKENIZER, workers);
  models.onBeat(workers[0]!);
  await vi.waitFor(() => expect(brought).toEqual(['m']), WAIT_MS);
  models.onBeat(workers[0]!);
  expect(warnings).toEqual([]);
  workers.push(withEngine('w2', 'fp_b'), withEngine('w3', 'fp_b'));
  for (const beat of [...workers, ...workers]) models.onBeat(beat);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(
    /^Workers of m have different engines, and give different answers: fp_a \(1 worker\), fp_b \(2 workers\)\./,
  );
  workers.shift();
  models.onLost();
  for (const beat of workers) models.onBeat(beat);
  expect(warnings).toHaveLength(1);
  workers.push(withEngine('w1', 'fp_a'));
  for (const beat of workers) models.onBeat(beat);
  expect(warnings).toHaveLength(2);
});

it('files that are others, or too many bytes, are not taken', async () => {
  const { models, warnings } = setUpWithFiles();
  models.onBeat(beatWith('a', [{ ...GOOD, digest: 'd' }]));
  models.onBeat(beatWith('b', [GOOD, { ...GOOD, name: 'tokenizer.json', bytes: 2 ** 28 }]));
  await vi.waitFor(() => expect(warnings).toHaveLength(2), WAIT_MS);
  expect(warnings.join()).toMatch(/engine\.json is not the one.*its files have 268435458 bytes/);
  expect(readdirSync(folder)).toEqual([]);
});

it('models of one text have one key, whatever their limits', () => {
  const long = { ...ENGINE, maxSeqLen: 9999, maxSequences: 1 };
  const text = (engine: ModelCard['engine']) => cardText({ files: [FILE], engine, aliases: [] });
  expect(text(long)).toBe(text(ENGINE));
  expect(text({ ...long, endTokenIds: [1] })).not.toBe(text(ENGINE));
  expect(modelKey(beatOf('a').pool.model)).toBe(`${text(ENGINE)}:a`);
});
