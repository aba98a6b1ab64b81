import { expect, it } from 'vitest';
import type { PulledModel, PullProgress } from '../../../../src/hub/pull.js';
import { type Download, ModelPulls } from '../../../../src/serving/on-demand/model-pulls.js';

const repository = (id: string) => ({ id, quant: null });

it('tells each download what the others will still take of the disk', async () => {
  const begun: Parameters<Download>[1][] = [];
  const ends: ((model: PulledModel) => void)[] = [];
  const pulls = new ModelPulls((_, on) => {
    begun.push(on);
    return new Promise((resolve) => ends.push(resolve));
  });
  const { signal } = new AbortController();
  const all = ['a/one', 'a/two'].map((id) => pulls.pull(repository(id), () => {}, signal));
  const told = (done: number, total: number) => ({ done, total }) as PullProgress;
  expect(begun.map((on) => on.awaitedBytes())).toEqual([0, 0]);
  begun[0]!.onProgress(told(30, 100));
  begun[1]!.onProgress(told(0, 1000));
  expect(begun.map((on) => on.awaitedBytes())).toEqual([1000, 70]);
  ends[0]!({} as PulledModel);
  await all[0];
  expect(begun[1]!.awaitedBytes()).toBe(0);
  ends[1]!({} as PulledModel);
  await all[1];
});
