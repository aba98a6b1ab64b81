import { InProcessHost, type InProcessHostOptions, type IterationStats } from 'skein';
import { expect } from 'vitest';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { fakeEngine } from './fake-engine.js';

export const TOKENS_PER_BLOCK = 8;

/** A host with its real worker, which computes one iteration at a time, when the test says so. */
export class SteppedHost {
  readonly host: InProcessHost;
  readonly stats: IterationStats[] = [];
  readonly #gate = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));

  constructor(
    params: OptionalParams = {},
    options: Partial<Pick<InProcessHostOptions, 'modelType' | 'schedulerPolicy'>> = {},
  ) {
    const gated = { ...params, gate: this.#gate.buffer, tokensPerBlock: TOKENS_PER_BLOCK } as OptionalParams;
    this.host = new InProcessHost({
      ...fakeEngine('', {
        ...gated,
        executorModule: new URL('./modules/gated-executor.mjs', import.meta.url),
      }),
      onIterationStats: (stats) => this.stats.push(stats),
      ...options,
    });
  }

  /** Waits until the step of this iteration is being computed. It continues when `finish` lets it. */
  async running(iteration: number): Promise<void> {
    await expect.poll(() => Atomics.load(this.#gate, 0), { interval: 1 }).toBe(iteration);
  }

  /** Lets the iteration end; its statistics. */
  async finish(iteration: number): Promise<IterationStats> {
    Atomics.store(this.#gate, 1, iteration);
    Atomics.notify(this.#gate, 1);
    await expect.poll(() => this.stats.length, { interval: 1 }).toBe(iteration);
    return this.stats[iteration - 1]!;
  }

  /** Runs iterations up to this one, whose step is then being computed. */
  async reach(iteration: number): Promise<void> {
    for (let i = this.stats.length + 1; i < iteration; i++) {
      await this.running(i);
      await this.finish(i);
    }
    await this.running(iteration);
  }

  /** From now on nothing holds it back. */
  open(): void {
    Atomics.store(this.#gate, 1, 2 ** 31 - 1);
    Atomics.notify(this.#gate, 1);
  }

  async close(): Promise<void> {
    this.open();
    await this.host.close({ abort: true });
  }
}
