import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import type { LoadableEngine } from '../../engine/executors/executor-kind.js';
import { loadAddon } from '../../engine/executors/native/load-addon.js';
import { RankedExecutor } from '../../engine/ranks/ranked-executor.js';
import { type GroupShape, sizeOf } from '../../engine/sharding/rank-shape.js';

/** A group of ranks that a test leads: rank 0 in this process, each other in one of its own. */
export interface TestGroup {
  executor: RankedExecutor;
  /** Resolves when all others have left the group. */
  left: Promise<unknown>;
}

/** Processes whose group has ended, for the next one: a start takes as long as dozens of steps. */
const free: ChildProcess[] = [];

/** Lets a process sit down in a group. @returns once it is there; `left` resolves when it has left the group */
async function seatFollower(message: object): Promise<{ left: Promise<void> }> {
  const child =
    free.pop() ?? fork(new URL('./rank-follower.mjs', import.meta.url), { serialization: 'advanced' });
  child.ref();
  child.channel?.ref();
  const left = new Promise<void>((resolve) => {
    const onMessage = (text: unknown) => {
      if (text !== 'free') return;
      child.off('message', onMessage);
      child.off('exit', resolve);
      free.push(child);
      resolve();
    };
    child.on('message', onMessage);
    child.once('exit', resolve);
  });
  child.send(message);
  await once(child, 'message');
  child.unref();
  child.channel?.unref();
  return { left };
}

export interface GroupConditions {
  limitMs?: number;
  /** Steps that must be begun before the other ranks compute the first one; default 0. */
  gate?: number;
}

/** Groups of a test file, ended together. */
export class TestGroups {
  readonly #made: TestGroup[] = [];

  async open(
    engine: LoadableEngine,
    shape: Partial<GroupShape>,
    options: ExecutorOptions,
    { limitMs = 60_000, gate = 0 }: GroupConditions = {},
  ): Promise<TestGroup> {
    const whole: GroupShape = { tensorParallelSize: 1, pipelineParallelSize: 1, ...shape };
    const size = sizeOf(whole);
    const folder = mkdtempSync(join(tmpdir(), 'skein-ranks-'));
    const path = join(folder, 'memory');
    loadAddon().createGroup(path, size);
    const { plan, weightsFile, tensors, packedFolder } = engine;
    const followers = await Promise.all(
      Array.from({ length: size - 1 }, (_, i) => {
        const seat = { shape: whole, rank: i + 1 };
        return seatFollower({
          engine: { plan, weightsFile, tensors, packedFolder },
          seat,
          path,
          limitMs,
          gate,
        });
      }),
    );
    const group = new (loadAddon().RankGroup)({ path, rank: 0, size, limitMs });
    rmSync(folder, { recursive: true });
    const executor = new RankedExecutor(engine, { ...options, seat: { shape: whole, rank: 0, group } });
    const made = { executor, left: Promise.all(followers.map(({ left }) => left)) };
    this.#made.push(made);
    return made;
  }

  async close(): Promise<void> {
    for (const { executor, left } of this.#made.splice(0)) {
      executor.close();
      await left;
    }
  }
}

/**
 * Rank 0 of a group of three, or of as many as there are heads, or of two stages where ranks can share no layer; closing it ends the
 * others.
 */
export async function openRanks(engine: LoadableEngine, options: ExecutorOptions): Promise<RankedExecutor> {
  const { attention, ops, states } = engine.plan;
  const { numHeads } = attention;
  const sharesLayers = numHeads > 1 && states === undefined && !ops.some(({ op }) => op === 'experts');
  const shape = sharesLayers ? { tensorParallelSize: Math.min(3, numHeads) } : { pipelineParallelSize: 2 };
  const { executor } = await new TestGroups().open(engine, shape, options);
  return executor;
}
