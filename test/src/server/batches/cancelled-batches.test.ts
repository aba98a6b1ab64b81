import { afterEach, expect, it, vi } from 'vitest';
import type * as SplitLines from '../../../../src/batch/split-lines.js';
import type { Script } from '../../support/fake-engine.js';
import { batchOf, begin, line, storingServers, until } from './support.js';

const readings = vi.hoisted(() => ({ now: 0, most: 0 }));

vi.mock('../../../../src/batch/split-lines.js', async (original) => {
  const { splitLines } = await original<typeof SplitLines>();
  return {
    splitLines: async function* (path: string, maxLineBytes: number) {
      readings.now++;
      readings.most = Math.max(readings.most, readings.now);
      try {
        yield* splitLines(path, maxLineBytes);
      } finally {
        readings.now--;
      }
    },
  };
});

const serverOf = storingServers();
const endless: Script = () => [{ tokens: [104] }, { waitMs: 1e8 }, { finish: 'stop' }];

afterEach(() => {
  readings.most = 0;
});

it('reads the inputs of batches that are cancelled in one moment one after the other', async () => {
  const limits = { maxFileBytes: 100_000, maxBytes: 1_000_000, maxFiles: 100 };
  const server = serverOf(endless, { limits });
  const ids: string[] = [];
  for (let i = 0; i < 12; i++)
    ids.push(
      (
        await begin(
          server,
          ['a', 'b', 'c'].map((id) => line(id)),
        )
      ).id,
    );
  for (const id of ids) await until(server, id, ({ status }) => status === 'in_progress');
  // Some of them run, and have their inputs open; the last ones wait for that.
  const running = readings.now;
  readings.most = running;
  const waiting = ids.slice(-4);
  for (const id of waiting) await server.post(`/v1/batches/${id}/cancel`, '');
  for (const id of waiting) await until(server, id);
  expect(readings.most).toBe(running + 1);
  expect((await batchOf(server, waiting[0]!)).status).toBe('cancelled');
});
