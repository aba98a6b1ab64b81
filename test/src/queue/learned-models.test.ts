import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Beat, FileFacts } from '../../../callbacks/nats/messages.js';
import type { QueueGateway } from '../../../host/gateway/queue-gateway.js';
import { LearnedModels, type LearnedModelsOptions } from '../../../src/queue/learned-models.js';

const root = mkdtempSync(join(tmpdir(), 'skein-learned-'));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const bytes = Buffer.from('{}');
const file: FileFacts = {
  name: 'engine.json',
  bytes: bytes.length,
  digest: createHash('sha256').update(bytes).digest('hex'),
};
const beat = (name: string, text: string, files: FileFacts[] = [file]): Beat =>
  ({ kind: 'beat', worker: 'w', pool: 'p', model: { name, text, files } }) as unknown as Beat;

/** Models that no gateway is asked for: what is told of them is as far as the files. */
function setUp(more: Partial<LearnedModelsOptions> = {}) {
  const folder = join(root, 'models');
  mkdirSync(folder, { recursive: true });
  const warnings: string[] = [];
  const brought: string[] = [];
  const models = new LearnedModels({
    gateway: { workersOf: () => [], open: () => {} } as unknown as QueueGateway,
    folder,
    limits: { maxQueueSize: 1, fairQueueing: false },
    readFile: async () => bytes,
    bring: async ({ name }) => {
      brought.push(name);
    },
    takeAway: async () => {},
    onWarning: (message) => warnings.push(message),
    ...more,
  });
  return { models, folder, warnings, brought };
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await settle();
}

describe('models that workers tell of', () => {
  it('have their files in a folder of the gateway, whatever they call themselves', async () => {
    const { models, folder, brought } = setUp();
    models.onBeat(beat('a', '../../outside'));
    models.onBeat(beat('b', 'b', [file, { ...file, name: '../../outside' }]));
    await until(() => brought.length === 2);
    expect(existsSync(join(root, 'outside'))).toBe(false);
    // Equal files are there once.
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^[0-9a-f]{16,64}$/)]);
    expect(readdirSync(join(folder, readdirSync(folder)[0]!))).toEqual(['engine.json']);
  });

  it('are not served with files that are others, or too many bytes', async () => {
    const { models, warnings, folder } = setUp();
    models.onBeat(beat('a', 'a', [{ ...file, digest: 'd' }]));
    models.onBeat(beat('b', 'b', [file, { ...file, name: 'tokenizer.json', bytes: 2 ** 28 }]));
    await until(() => warnings.length === 2);
    expect(warnings.sort().join()).toMatch(/engine\.json is not the one.*its files have 268435458 bytes/);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('are so many, and a few at once', async () => {
    const asked: (() => void)[] = [];
    const readFile = () => new Promise<Uint8Array>((resolve) => asked.push(() => resolve(bytes)));
    const { models, brought } = setUp({ readFile });
    for (let i = 0; i < 1000; i++) models.onBeat(beat(`m${i}`, `t${i}`));
    await settle();
    expect(asked).toHaveLength(4);
    for (const answer of asked) answer();
    await until(() => brought.length >= 256);
    await settle();
    expect(brought).toHaveLength(256);
  });
});
