import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readTopology } from '../../../../base/topology.js';
import { loadAddon } from '../../../../engine/executors/native/load-addon.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import type { ThreadPlaces } from '../../../../engine/executors/thread-places.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { executorOptions } from '../../../support/native-options.js';

let tiny: TinyNetwork;
const folder = mkdtempSync(join(tmpdir(), 'skein-places-'));
beforeAll(() => {
  tiny = makeTinyNetwork();
});
afterAll(() => {
  tiny.remove();
  rmSync(folder, { recursive: true });
});

/** Processors that this test may use: the calling thread keeps all of them, so that later tests are where they were. */
const CPUS = readTopology()?.cores.flatMap(({ cpus }) => cpus) ?? [];
const LAST = CPUS.at(-1)!;

/** An executor of the addon itself, with places that a machine of this size would not choose. */
function make(threads: number, places?: ThreadPlaces) {
  return loadAddon().createExecutor({
    ...executorOptions({ threads }),
    maxAttentionWindow: 0,
    sinkTokenLength: 0,
    maxAdapters: 0,
    maxLoraRank: 0,
    processors: threads,
    instructionSet: NativeExecutor.instructionSetOf({}),
    plan: tiny.plan,
    weightsFile: tiny.weightsFile,
    tensors: tiny.tensors,
    packedFile: join(folder, 'packed.bin'),
    ...(places === undefined ? {} : { places }),
  });
}

function logitsOf(threads: number, places?: ThreadPlaces): Float32Array {
  const executor = make(threads, places);
  const tokens = Array.from({ length: 40 }, (_, i) => (i * 7) % 100);
  const batch = makeStepBatch([{ tokens, cached: 0, blocks: [0, 1, 2], logits: 'all' }], {
    tokensPerBlock: 16,
    inverseFrequencies: tiny.inverseFrequencies,
    newBlocks: [0, 1, 2],
  });
  const logits = executor.forward(batch).slice();
  executor.close();
  return logits;
}

/** Lists of processors of this process's threads. */
function affinities(): string[] {
  return readdirSync('/proc/self/task').flatMap((thread) => {
    try {
      const status = readFileSync(`/proc/self/task/${thread}/status`, 'utf8');
      return [/^Cpus_allowed_list:\s*(\S+)$/m.exec(status)![1]!];
    } catch {
      return []; // It has ended meanwhile.
    }
  });
}

describe.runIf(process.platform === 'linux' && CPUS.length > 0)('threads with places', () => {
  const places = (threads: number, hasFarMemory: boolean): ThreadPlaces => ({
    cpus: Array.from({ length: threads }, (_, thread) => (thread === 0 ? CPUS : [LAST])),
    hasFarMemory,
  });

  it.each([1, 2, 5])('give the same bits, with weights in the file or in near memory: %i', (threads) => {
    const expected = logitsOf(1);
    expect(logitsOf(threads, places(threads, false))).toEqual(expected);
    expect(logitsOf(threads, places(threads, true))).toEqual(expected);
  });

  it.runIf(CPUS.length > 1)('stay on their processors', () => {
    const count = () => affinities().filter((list) => list === `${LAST}`).length;
    const before = count();
    const executor = make(4, places(4, true));
    // The thread that provides the first pages goes from place to place, and may have ended.
    expect(count() - before).toBeGreaterThanOrEqual(3);
    executor.close();
    expect(count()).toBe(before);
  });

  it('run also where the system refuses the place', () => {
    const cpus = [CPUS, [60_000]];
    expect(logitsOf(2, { cpus, hasFarMemory: false })).toEqual(logitsOf(1));
  });

  it.each([
    [[CPUS], 'places.cpus has places for 1 threads, but there are 2.'],
    [[CPUS, [-1]], 'places.cpus must be a list of lists of processors, one for each thread.'],
    [[CPUS, [0.5]], 'places.cpus must be a list of lists of processors, one for each thread.'],
    [[CPUS, [2 ** 31]], 'places.cpus must be a list of lists of processors, one for each thread.'],
  ])('are refused as %j', (cpus, message) => {
    expect(() => make(2, { cpus, hasFarMemory: false })).toThrow(message);
  });
});
