import type { Executor, ExecutorOptions, InstructionSet } from '../../engine/executor.js';
import { type NativeEngine, NativeExecutor } from '../../engine/native/native-executor.js';
import { PortableExecutor } from '../../engine/portable/portable-executor.js';
import { IdleRunner } from './idle-runner.js';
import { instructionSets } from './native-options.js';
import { PlainRunner } from './plain-runner.js';

/** An executor as tests open it. */
export interface TestExecutor {
  name: string;
  /** What ExecutorOptions.instructionSet may be; undefined: it has no choice. */
  instructionSets: readonly (InstructionSet | undefined)[];
  open(engine: NativeEngine, options: ExecutorOptions): Promise<Executor>;
}

export const NATIVE: TestExecutor = {
  name: 'native',
  instructionSets,
  open: async (engine, options) => new NativeExecutor(engine, options),
};

/** What all executors by a tensor library are around their runners, with a runner in plain loops. */
export const PLAIN: TestExecutor = {
  name: 'portable, in plain loops',
  instructionSets: [undefined],
  open: (engine, options) =>
    PortableExecutor.open(engine, options, async () => new PlainRunner(engine, options)),
};

/** The same around a runner that computes nothing: for tests that write logits of their own. */
export const IDLE: TestExecutor = {
  name: 'portable',
  instructionSets: [undefined],
  open: (engine, options) =>
    PortableExecutor.open(engine, options, async () => new IdleRunner(engine, options)),
};

/** The two ways in which checks, what is handed out and sampling are written. */
export const WAYS: readonly TestExecutor[] = [NATIVE, PLAIN];

/** The two samplers. */
export const SAMPLERS: readonly TestExecutor[] = [NATIVE, IDLE];
