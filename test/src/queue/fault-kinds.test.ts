import { expect, it } from 'vitest';
import { FAULTS } from '../../../tools/faults/kinds/index.js';
import { runOptions } from '../../../tools/faults/options.js';
import { REQUEST_KINDS } from '../../../tools/faults/requests/kinds.js';
import { wholeRun } from '../../../tools/faults/whole-run.js';
import { cleanEnvironment, testCacheDir } from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

describeWithNats('the work queue, struck by a fault of each kind', () => {
  it('gives every answer whole, once, and equal to that of a single server', async () => {
    const options = runOptions({ seed: '11', requests: '45', workers: '2', prefill: '1' });
    const report = await wholeRun(options, {
      nats: testNats!,
      routerFolder: '',
      environment: cleanEnvironment({}),
      cacheDir: testCacheDir,
    });
    expect(report).toMatchObject({ wrong: [], leftovers: [], numMissed: 0 });
    expect(options.requests).toBeGreaterThanOrEqual(REQUEST_KINDS.length);
    expect(report.struck.map(({ kind }) => kind).sort()).toEqual(FAULTS.map(({ name }) => name).sort());
    expect(report.numTokens).toBeGreaterThan(1_000);
  });
});
