import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATCH_BYTES } from '../../../src/serving/pictures/kept-rows.js';
import { Neighbour } from '../../../tools/request-costs/asked.js';
import { calibrated, exceeded, megabytes, ms } from '../../../tools/request-costs/bounds.js';
import { CHAT, crowdOf, dearPictures } from '../../../tools/request-costs/dear-pictures.js';
import { type Cost, costOf, NO_BASELINE } from '../../../tools/request-costs/measure.js';
import { MeteredServer } from '../../../tools/request-costs/metered-server.js';
import { costTable } from '../../../tools/request-costs/table.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { writeSeeingModel } from '../../support/seeing-model.js';
import { cleanEnvironment } from '../support/skein-process.js';

/** What the machine and the garbage collector add goes away. */
const MAX_TIMES = 3;
const HELD_BYTES = 2 ** 29;
/** Bytes that pictures take in their process, and what Node.js and its decoder take there. */
const HELPER_BYTES = 2 ** 29 + 2 ** 28;
/** Clients of a crowd who wait for their answers. */
const ANSWERS = 4;
const RETRY_MS = 100;

/** A model whose pictures have few tokens, so that it answers soon, and one whose pictures have as many as there may be. */
const [FEW, MANY] = ['few', 'many'];
const DEAR = dearPictures(FEW, MANY);

let server: MeteredServer;
let neighbour: Neighbour;
let slowness: number;
beforeAll(async () => {
  const folder = temporaryFolder('skein-dear-pictures');
  const models = [
    [FEW, 2 ** 17],
    [MANY, 2 ** 24],
  ].map(([name, maxPixels]) => {
    const sizes = { patchSize: 16, maxPixels: maxPixels as number, maxTokens: 40_000 };
    return ['--model', `${name}=${writeSeeingModel(join(folder, name as string), sizes)}`];
  });
  slowness = calibrated();
  const limits = ['--kv-cache-tokens', '160000', '--max-held-memory-bytes', String(HELD_BYTES)];
  const flags = [...models.flat(), ...limits, '--threads', '1', '--cache-dir', folder];
  server = await MeteredServer.start(flags, cleanEnvironment({}));
  neighbour = new Neighbour(server.url, FEW, 4000);
  // Code is compiled, and the processes that decode are there.
  for (const [, request] of [DEAR[0]!, DEAR.at(-1)!])
    for (let i = 0; i < 2; i++) await costOf(server, await request(50 + i), NO_BASELINE);
});
afterAll(async () => {
  await neighbour?.stop();
  await server?.stop();
});

/** Most bytes that a process of the server has had. */
function helperPeak(): number {
  const children = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').trim().split(' ');
  const peaks = children.map(
    (pid) => /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1],
  );
  return 1024 * Math.max(...peaks.map(Number));
}

const costs: Cost[] = [];

describe('a request with the dearest pictures keeps within its bounds', () => {
  it.each(DEAR)('with %s', async (_, request) => {
    const found: string[] = [];
    for (let i = 0; i < MAX_TIMES; i++) {
      const cost = await costOf(server, await request(i), NO_BASELINE);
      expect([cost.status, cost.answer]).toEqual([200, '']);
      slowness = Math.max(slowness, calibrated());
      const beyond = exceeded(cost, slowness);
      if (beyond.length === 0) {
        costs.push(cost);
        return;
      }
      found.push(...beyond);
    }
    expect(found).toEqual([]);
  });

  it('in the process that decodes them, too', () => {
    console.log(costTable(costs));
    expect(helperPeak()).toBeLessThan(HELPER_BYTES);
  });
});

/** Answers to bodies that are sent at once, of clients who try again where there is no room, until some have got theirs and all others leave. */
async function answersOf(bodies: readonly Buffer[], wanted: number): Promise<number[]> {
  const statuses: number[] = [];
  const gone = new AbortController();
  const headers = { 'content-type': 'application/json' };
  const ask = async (body: Buffer): Promise<void> => {
    const asked = { method: 'POST', headers, body: new Uint8Array(body), signal: gone.signal };
    const response = await fetch(`${server.url}${CHAT}`, asked);
    await response.text();
    statuses.push(response.status);
    if (statuses.filter((status) => status === 200).length === wanted) gone.abort();
    if (response.status !== 429) return;
    await sleep(RETRY_MS, null, { signal: gone.signal });
    await ask(body);
  };
  await Promise.allSettled(bodies.map(ask));
  return statuses;
}

describe.each([
  ['pixels', 64],
  ['bytes', 16],
] as const)('clients with the largest picture by its %s, %i of them at once', (largest, clients) => {
  it('leave a neighbour its tokens and the server its memory', async () => {
    const bodies = await crowdOf(FEW, clients, largest);
    server.resetPeak();
    const before = server.residentBytes();
    const { iterations: first } = await server.noted(true);
    neighbour.takeGap();
    const statuses = await answersOf(bodies, ANSWERS);
    const { holdNs, iterations } = await server.noted();
    const peak = server.peakBytes() - before;
    console.log(
      `${statuses.length} answers; main thread held for ${ms(holdNs / 1e6)}; ${iterations - first} iterations, ${ms(neighbour.takeGap())} between two tokens of the neighbour; memory ${megabytes(peak)}, of the other process ${megabytes(helperPeak())}`,
    );
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(ANSWERS);
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    expect(iterations - first).toBeGreaterThan(ANSWERS);
    expect(peak).toBeLessThan(HELD_BYTES + PATCH_BYTES);
    expect(helperPeak()).toBeLessThan(HELPER_BYTES);
  });
});
