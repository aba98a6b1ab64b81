import { expect, it } from 'vitest';
import { ServerMetrics } from '../../../../../src/server/metrics/families/server-metrics.js';
import { enginesOf } from '../../../../../src/serving/served-model.js';
import { FakeEngine } from '../../../support/fake-engine.js';
import { directoryOf } from '../../../support/served-models.js';
import { toyModel } from '../../../support/toy-server.js';

const engine = new FakeEngine(() => []);

it('metrics tell apart the engines that answer for a model', async () => {
  let counts = new Map([
    ['fp_a', 2],
    ['fp_b', 1],
  ]);
  const several = toyModel(engine, { id: 'several', engines: () => counts });
  const metrics = new ServerMetrics(directoryOf(several, toyModel(engine)), {});
  const lines = async () =>
    (await metrics.text()).split('\n').filter((line) => /^skein:engines\{/.test(line));
  const line = (name: string, fingerprint: string, count: number) =>
    `skein:engines{model_name="${name}",engine="0",system_fingerprint="${fingerprint}"} ${count}`;
  expect(await lines()).toEqual([
    line('several', 'fp_a', 2),
    line('several', 'fp_b', 1),
    line('toy', 'fp_toy', 1),
  ]);
  counts = new Map([['fp_b', 3]]);
  expect(await lines()).toEqual([line('several', 'fp_b', 3), line('toy', 'fp_toy', 1)]);
  expect([...enginesOf(several).keys()]).toEqual(['fp_b']);
});
