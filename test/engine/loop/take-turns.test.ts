import { expect, it } from 'vitest';
import { type HarnessOptions, LoopHarness } from '../../../tools/support/loop-harness.js';
import { loraCrowd } from '../../support/lora-requests.js';

const QUEUED = 0;
const PAUSED = 3;
const ADAPTERS = { slots: 3, hostPages: 32, devicePages: 3 };

/** Ids of the requests in the engine that wait, as a snapshot of all of them has it. */
function waitingIn({ loop }: LoopHarness): bigint[] {
  const { requestIds, states } = loop.formation();
  return [...requestIds].filter((_, row) => states[row] === QUEUED || states[row] === PAUSED);
}

const settings: [string, HarnessOptions][] = [
  ['GUARANTEED_NO_EVICT', { schedulerPolicy: 'GUARANTEED_NO_EVICT' }],
  ['pauses', { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 9 }],
  ['V1', { modelType: 'V1' }],
  [
    'two micro-batches that pause',
    { enableTrtOverlap: true, minMicroBatchSize: 2, schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 12 },
  ],
];

it.each(settings)('%s: whoever adds up what is told knows who waits', (_, options) => {
  const harness = new LoopHarness({ adapters: ADAPTERS, ...options });
  harness.waiting.push(...loraCrowd(64, 20).sent);
  const hasBegun = new Set<bigint>();
  let mostWaiting = 0;
  let numPaused = 0;
  while (harness.loop.iterate() || harness.waiting.length > 0) {
    for (const { began, paused } of harness.turns.splice(0)) {
      for (const id of began) hasBegun.add(id);
      for (const id of paused) hasBegun.delete(id);
      numPaused += paused.length;
    }
    const waiting = waitingIn(harness);
    mostWaiting = Math.max(mostWaiting, waiting.length);
    expect([...harness.loop.formation().requestIds].filter((id) => !hasBegun.has(id))).toEqual(waiting);
  }
  expect(mostWaiting).toBeGreaterThan(0);
  expect(numPaused > 0).toBe((options.numBlocks ?? 64) < 64);
});
