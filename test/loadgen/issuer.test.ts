import { describe, expect, it } from 'vitest';
import { monotonicMs } from '../../loadgen/clock.js';
import { Issuer } from '../../loadgen/worker/issuer.js';

describe('2: issue times', () => {
  for (const busyWait of [false, true]) {
    it(`are never early and in order${busyWait ? ', with busy-waiting' : ''}; what is added late goes first where it is due first`, async () => {
      const issued: { name: string; lateMs: number }[] = [];
      const start = monotonicMs();
      await new Promise<void>((resolve) => {
        const issuer = new Issuer<{ atMs: number; name: string }>(({ name, atMs }) => {
          issued.push({ name, lateMs: monotonicMs() - atMs });
          if (issued.length === 6) resolve();
        }, busyWait);
        for (const [name, ms] of [
          ['d', 40],
          ['a', 5],
          ['c', 20.5],
          ['b', 20],
          ['e', 40],
        ] as const) {
          issuer.add({ name, atMs: start + ms });
        }
        issuer.add({ name: 'now', atMs: start - 1000 });
        expect(issuer.waiting).toBe(6);
      });
      expect(issued.map(({ name }) => name)).toEqual(['now', 'a', 'b', 'c', 'd', 'e']);
      for (const { lateMs } of issued) expect(lateMs).toBeGreaterThanOrEqual(0);
    });
  }

  it('that are cleared do not come', async () => {
    const issued: number[] = [];
    const issuer = new Issuer<{ atMs: number }>(({ atMs }) => issued.push(atMs), false);
    issuer.add({ atMs: monotonicMs() + 5 });
    issuer.add({ atMs: monotonicMs() + 6 });
    expect(issuer.clear()).toHaveLength(2);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(issued).toEqual([]);
  });
});
