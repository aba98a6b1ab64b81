import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { calibrated, exceeded } from '../../../tools/request-costs/bounds.js';
import { costOfTensors, dearTensors, writeIdentities } from '../../../tools/request-costs/dear-tensors.js';
import type { Cost } from '../../../tools/request-costs/measure.js';
import { MeteredServer } from '../../../tools/request-costs/metered-server.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { cleanEnvironment } from '../support/skein-process.js';

/** What the machine and the garbage collector add goes away. */
const MAX_TIMES = 3;

let server: MeteredServer;
let slowness: number;
beforeAll(async () => {
  const folder = temporaryFolder('skein-dear-tensors-');
  writeIdentities(folder);
  slowness = calibrated();
  server = await MeteredServer.start(['--model-repository', folder, '--threads', '1'], cleanEnvironment({}));
  const [first] = dearTensors();
  for (let i = 0; i < 2; i++) await costOfTensors(server, first!);
});
afterAll(() => server?.stop());

describe('a request for tensors keeps within its bounds', () => {
  it.each(dearTensors().map((asked) => [asked.name, asked] as const))('with %s', async (_, asked) => {
    const found: string[] = [];
    for (let i = 0; i < MAX_TIMES; i++) {
      const cost: Cost = await costOfTensors(server, asked);
      expect([200, 400]).toContain(cost.status);
      if (exceeded(cost, slowness).length === 0) return;
      // The machine may have become slower since it was looked at.
      slowness = Math.max(slowness, calibrated());
      const beyond = exceeded(cost, slowness);
      if (beyond.length === 0) return;
      found.push(...beyond);
    }
    expect(found).toEqual([]);
  });
});
