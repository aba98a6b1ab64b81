import { cpuQuota } from '../../engine/cpu-quota.js';
import type { Executor, ExecutorOptions } from '../../engine/executor.js';
import { type NativeEngine, NativeExecutor } from '../../engine/native/native-executor.js';
import { PortableExecutor } from '../../engine/portable/portable-executor.js';
import { openWasmRunner } from '../../engine/wasm/open-wasm-runner.js';
import { WasmRunner } from '../../engine/wasm/wasm-runner.js';

/** Seconds per kind of op since the last call; counting goes on where `on` is true. */
export type Profile = (on: boolean) => Record<string, number>;

export interface Candidate {
  name: string;
  /** profile: where it can tell. */
  open(engine: NativeEngine, options: ExecutorOptions): Promise<{ executor: Executor; profile?: Profile }>;
}

const native = (threads: number): Candidate => ({
  name: `native, ${threads} ${threads === 1 ? 'thread' : 'threads'}`,
  open: async (engine, options) => {
    const executor = new NativeExecutor(engine, { ...options, threads });
    return { executor, profile: (on) => executor.profile(on) };
  },
});

const wasm: Candidate = {
  name: 'wasm, 1 thread',
  open: async (engine, options) => {
    let profile: Profile | undefined;
    const executor = await PortableExecutor.open(engine, options, async (runnable, given) => {
      const runner = await openWasmRunner(runnable, given);
      if (runner instanceof WasmRunner) profile = (on) => runner.profile(on);
      return runner;
    });
    return { executor, ...(profile === undefined ? {} : { profile }) };
  },
};

/** All that run on this machine, the one that others are compared with first. */
export const CANDIDATES: readonly Candidate[] = [
  native(cpuQuota()),
  ...(cpuQuota() === 1 ? [] : [native(1)]),
  wasm,
];
