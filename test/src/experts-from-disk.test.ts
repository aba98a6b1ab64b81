import { Skein } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dropFromMemory } from '../../tools/support/drop-from-memory.js';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { startServer } from './support/skein-process.js';

const engines = new TestEngines();
let engine: string;
beforeAll(async () => {
  engine = (await engines.get(tinyModelPath('mixtral'), 'f32')).directory;
});
afterAll(() => engines.remove());

const REQUEST = {
  promptTokens: [3, 1, 4, 1, 5],
  maxTokens: 12,
  temperature: 0,
  ignoreEos: true,
  logProbs: 2,
};
const NOTE =
  /Experts are read from the disk: [\d.]+ MB, of which memory is counted for [\d.]+ MB; [\d.]+ MB a token at most, at 1000 MB\/s \(assumed\), so at most \d+ tokens\/s for a sequence whose experts are not in memory\./;

async function answer(options: { expertFraction?: number } = {}) {
  await using skein = await Skein.load({ model: engine, kvCacheTokens: 512, threads: 1, ...options });
  const read: number[] = [];
  skein.onStats(({ expertReadBytes }) => read.push(expertReadBytes));
  const { tokens, logProbs } = await skein.complete(REQUEST);
  return { drawn: { tokens, logProbs }, read, note: skein.info.expertReading };
}

describe('a mixture whose experts are read from the disk', () => {
  it('answers with the same bits, and counts what it has read', async () => {
    const inMemory = await answer();
    expect(inMemory.note).toBeNull();
    expect(inMemory.read.every((bytes) => bytes === 0)).toBe(true);
    dropFromMemory(engine);
    const fromDisk = await answer({ expertFraction: 0.5 });
    expect(fromDisk.note).toMatch(NOTE);
    expect(fromDisk.drawn).toEqual(inMemory.drawn);
    // Elsewhere pages stay in memory.
    if (process.platform === 'linux') expect(fromDisk.read[0]).toBeGreaterThan(0);
    expect((await answer({ expertFraction: 0.5 })).read.every((bytes) => bytes === 0)).toBe(true);
  });

  it('is told by a server as it starts', async () => {
    const server = await startServer([
      '--model',
      engine,
      '--kv-cache-tokens',
      '512',
      '--expert-fraction',
      '0.5',
    ]);
    const lines = server.output().stderr.split('\n');
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    await server.stop();
    expect(lines).toContainEqual(expect.stringMatching(NOTE));
    expect(metrics).toMatch(/^skein:expert_read_bytes_total\{.*\} \d+$/m);
  });
});
