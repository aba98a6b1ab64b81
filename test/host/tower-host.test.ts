import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { TowerHost, TowerHostOptions } from '../../host/tower-host.js';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madeModelPath } from '../support/made-models.js';
import { madePictures, madeTower, writeMadeTower } from '../support/made-towers.js';

type Host = new (options: TowerHostOptions) => TowerHost;
let Compiled: Host;
beforeAll(async () => {
  // The compiled one: its thread runs JavaScript.
  const url = new URL('../../dist/host/tower-host.js', import.meta.url).href;
  Compiled = ((await import(url)) as { TowerHost: Host }).TowerHost;
});

const folder = temporaryFolder('skein-tower-host');
const engines = new TestEngines();
const hosts: TowerHost[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close({ abort: true });
});
afterAll(() => engines.remove());

async function open(model: string, options: Partial<TowerHostOptions> = {}) {
  const { directory } = await engines.get(model, 'f32');
  const params = { threads: 1, maxPatches: 64 };
  const host = new Compiled({ enginePath: directory, params, onError: () => {}, ...options });
  hosts.push(host);
  return host;
}

const MADE = madeTower('qwen3-vl');

describe('a tower in its worker', () => {
  it('gives each request the rows of its pictures, many requests in a batch', async () => {
    const batches: number[] = [];
    const host = await open(writeMadeTower(folder, MADE), {
      onBatch: ({ pictures }) => batches.push(pictures),
    });
    const [large, small] = madePictures(MADE);
    const requests = [[large!, small!], [small!], [small!, small!]].map((pictures) => host.see(pictures));
    const [both, ...others] = await Promise.all(requests);
    const rows = both!.flatMap((one) => [...one]);
    const worst = MADE.rows.flat().reduce((most, one, i) => Math.max(most, Math.abs(one - rows[i]!)), 0);
    expect(worst).toBeLessThan(1e-5);
    expect(both!.map(({ length }) => length)).toEqual([6 * MADE.width, MADE.width]);
    for (const seen of others.flat()) expect(seen).toEqual(both![1]);
    expect(batches).toEqual([5]);
    expect(host.info).toMatchObject({ rowWidth: MADE.width, limits: { maxPatches: 64 }, executor: 'native' });
    expect(host.info!.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(await host.see([])).toEqual([]);
  });

  it('refuses a picture that it does not see, and answers the others', async () => {
    const host = await open(writeMadeTower(folder, MADE));
    const [, small] = madePictures(MADE);
    const grid = (rows: number, columns: number) => ({ ...small!, grid: { rows, columns } });
    await host.ready;
    for (const [picture, message] of [
      [grid(3, 2), 'A picture has 3 x 2 patches; multiples of 2 are taken.'],
      [grid(16, 6), 'A picture has 96 patches; up to 64 are taken.'],
      [grid(2, 4), 'A picture of 2 x 4 patches has 96 numbers; 192 are expected.'],
    ] as const)
      await expect(host.see([picture])).rejects.toThrow(message);
    const blind = { ...small!, patches: small!.patches.fill(Number.NaN, 0, 1) };
    const [wrong, right] = await Promise.allSettled([host.see([blind]), host.see([madePictures(MADE)[1]!])]);
    expect(wrong).toMatchObject({ reason: { message: expect.stringContaining('not finite') } });
    expect(right!.status).toBe('fulfilled');
  });

  it('is refused by the name of a model whose pictures are not supported, and of one that reads texts alone', async () => {
    const model = madeModelPath(folder, 'smolvlm');
    const file = join(model, 'config.json');
    const config = JSON.parse(readFileSync(file, 'utf8')) as object;
    writeFileSync(file, JSON.stringify({ ...config, architectures: ['LlavaNextForConditionalGeneration'] }));
    const others = await open(model, { workerRestart: false });
    await expect(others.ready).rejects.toThrow(
      'pictures of LlavaNextForConditionalGeneration are not supported',
    );
    const texts = await open(tinyModelPath('gqa'), { workerRestart: false });
    await expect(texts.ready).rejects.toThrow('this model reads texts alone; it sees no pictures');
  });
});
