import { counted } from '../../../base/sentences.js';
import { defaultThreads } from '../../../base/topology.js';
import type { Executor, ExecutorOptions } from '../../../engine/executors/executor.js';
import { type NativeEngine, NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { PortableExecutor } from '../../../engine/executors/portable/portable-executor.js';
import { findInstallation } from '../../../engine/executors/tensorflow/installation.js';
import { openTensorFlowRunner } from '../../../engine/executors/tensorflow/open-tensorflow-runner.js';
import { openWasmRunner } from '../../../engine/executors/wasm/open-wasm-runner.js';
import { WasmRunner } from '../../../engine/executors/wasm/wasm-runner.js';

/** Seconds per kind of op since the last call; counting continues where `on` is true. */
export type Profile = (on: boolean) => Record<string, number>;

export interface Candidate {
  name: string;
  /** The candidate's logits stay on a device, and it draws there unless they are read back. */
  drawsOnDevice?: true;
  /** profile: where it can report one. */
  open(engine: NativeEngine, options: ExecutorOptions): Promise<{ executor: Executor; profile?: Profile }>;
}

const native = (threads: number): Candidate => ({
  name: `native, ${counted(threads, 'thread')}`,
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

/** TensorFlow runs a single graph, so that the parts of a call cannot be timed. */
const tensorflow = (threads: number): Candidate => ({
  name: `tensorflow, ${counted(threads, 'thread')}`,
  drawsOnDevice: true,
  open: async (engine, options) => ({
    executor: await PortableExecutor.open(engine, { ...options, threads }, openTensorFlowRunner),
  }),
});

/** All that run on this machine, the one that others are compared with first. */
export const CANDIDATES: readonly Candidate[] = [
  native(defaultThreads()),
  ...(defaultThreads() === 1 ? [] : [native(1)]),
  wasm,
  ...(findInstallation() === null ? [] : [tensorflow(defaultThreads())]),
];
