import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openEngine } from '../../../../engine/building/engine.js';
import { needsOf } from '../../../../src/serving/load-models.js';
import { withSight } from '../../../../src/serving/pictures/sight-memory.js';
import { TestEngines, tinyModelPath } from '../../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { writeSeeingModel } from '../../../support/seeing-model.js';

const engines = new TestEngines();
afterAll(() => engines.remove());
const folder = temporaryFolder('skein-sight-memory');
const NOTHING = { packedWeights: 0, storedWeights: 0, workspace: 0 };
const options = { model: 'any', executor: 'native', threads: 1, maxContextTokens: 64 } as const;

describe('the memory of a model that sees', () => {
  it('has its tower and the rows that it keeps, before anything is loaded', async () => {
    const { directory } = await engines.get(writeSeeingModel(folder), 'f32');
    const sight = await withSight(NOTHING, options, directory);
    expect(sight.packedWeights).toBeGreaterThan(10_000);
    // 8192 patches of a batch, besides 256 MiB of rows.
    expect(sight.workspace).toBeGreaterThan(2 ** 28 + 8192 * 4 * (16 + 24));

    const engine = openEngine(directory);
    const all = await needsOf(options, { engine, draft: null });
    const blind = join(folder, 'blind');
    cpSync(directory, blind, { recursive: true });
    writeFileSync(
      join(blind, 'tower', 'tower.json'),
      '{"towerVersion": 1, "refusal": "Such pictures are not seen."}',
    );
    const text = await needsOf(options, { engine: openEngine(blind), draft: null });
    expect(all.fixed).toEqual(await withSight(text.fixed, options, directory));
    expect(all.mostBytes).toBe(text.mostBytes);
    expect(await withSight(text.fixed, options, blind)).toEqual(text.fixed);
  });

  it('is that of its text model where it reads texts alone', async () => {
    const { directory } = await engines.get(tinyModelPath('gqa'), 'f32');
    expect(await withSight(NOTHING, options, directory)).toBe(NOTHING);
  });
});
