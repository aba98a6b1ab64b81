import { describe } from 'vitest';
import { EXECUTOR_NAMES, type InstructionSet } from '../../callbacks/gpt-manager-options.js';
import type { Executor, ExecutorOptions } from '../../engine/executors/executor.js';
import { type NativeEngine, NativeExecutor } from '../../engine/executors/native/native-executor.js';
import type { NetworkRunner, RunnableEngine } from '../../engine/executors/portable/network-runner.js';
import { PortableExecutor } from '../../engine/executors/portable/portable-executor.js';
import { openTensorFlowRunner } from '../../engine/executors/tensorflow/open-tensorflow-runner.js';
import { openWasmRunner } from '../../engine/executors/wasm/open-wasm-runner.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';
import { instructionSets } from './native-options.js';
import { PlainRunner } from './plain-runner.js';
import { openRanks } from './rank-groups.js';
import { isShort } from './scale.js';
import { testTensorFlow } from './test-tensorflow.js';

/** A NetworkRunner that computes nothing: its logits are what a test writes into them. */
class IdleRunner implements NetworkRunner {
  readonly name = 'wasm';
  readonly device = 'nothing';
  readonly #logits: Float32Array;
  readonly #width: number;
  #rows = 0;

  constructor({ plan }: RunnableEngine, { maxLogitRows }: ExecutorOptions) {
    this.#width = plan.outputWidth;
    this.#logits = new Float32Array(maxLogitRows * plan.outputWidth);
  }

  forward(): void {}

  head(rows: Int32Array): void {
    this.#rows = rows.length;
  }

  logits(): Float32Array {
    return this.#logits.subarray(0, this.#rows * this.#width);
  }

  copyBlocks(): void {}

  areFinite(): boolean {
    return true;
  }

  memory() {
    return { weightBytes: 0, kvCacheBytes: 0, workspaceBytes: this.#logits.byteLength };
  }

  close(): void {}
}

/** An executor as tests open it. */
export interface TestExecutor {
  name: string;
  /** Values that ExecutorOptions.instructionSet may have; undefined: the executor has no choice. */
  instructionSets: readonly (InstructionSet | undefined)[];
  kvDtypes: readonly KvDtype[];
  /**
   * True: a row has the same bits alone and in a crowd, whole and in chunks, in any blocks. False:
   * they are the same within rounding.
   */
  keepsBits: boolean;
  /** True: it also takes networks whose tokens attend both ways. */
  runsEncoders: boolean;
  /** True: it also takes networks whose layers keep states of sequences. */
  runsStates: boolean;
  /** Why it cannot run here: its tests are skipped, and say so; null: it can. */
  missing: string | null;
  open(engine: NativeEngine, options: ExecutorOptions): Promise<Executor>;
}

export const NATIVE: TestExecutor = {
  name: 'native',
  instructionSets,
  kvDtypes: ['f32', 'bf16', 'int8'],
  keepsBits: true,
  runsEncoders: true,
  runsStates: true,
  missing: null,
  open: async (engine, options) => new NativeExecutor(engine, options),
};

/** The executor around all runners by a tensor library, here with a runner written for tests. */
function portable(
  name: string,
  Runner: new (engine: NativeEngine, options: ExecutorOptions) => NetworkRunner,
): TestExecutor {
  return {
    name,
    instructionSets: [undefined],
    kvDtypes: ['f32', 'bf16'],
    keepsBits: true,
    runsEncoders: false,
    runsStates: false,
    missing: null,
    open: (engine, options) =>
      PortableExecutor.open(engine, options, async () => new Runner(engine, options)),
  };
}

export const PLAIN = portable('portable, in plain loops', PlainRunner);

/** Its runner computes nothing: for tests that write logits of their own. */
export const IDLE = portable('portable', IdleRunner);

/** By tfjs-backend-wasm. */
export const WASM: TestExecutor = {
  name: 'wasm',
  instructionSets: [undefined],
  kvDtypes: ['f32'],
  keepsBits: true,
  runsEncoders: true,
  runsStates: true,
  missing: null,
  open: (engine, options) => PortableExecutor.open(engine, options, openWasmRunner),
};

/** The TensorFlow executor; it runs here if `skein setup tensorflow` has been run. */
const TENSORFLOW: TestExecutor = {
  name: 'tensorflow',
  instructionSets: [undefined],
  kvDtypes: ['f32', 'bf16'],
  keepsBits: true,
  runsEncoders: true,
  runsStates: false,
  missing: testTensorFlow === null ? 'skein setup tensorflow' : null,
  open: (engine, options) => PortableExecutor.open(engine, options, openTensorFlowRunner),
};

/** Three ranks, which part each op of the native executor; two for models of fewer heads, and as stages where ranks can share no layer. */
export const RANKS: TestExecutor = {
  ...NATIVE,
  name: 'ranks',
  kvDtypes: ['f32', 'bf16', 'int8'],
  open: (engine, options) => openRanks(engine, options),
};

/** The two ways in which checks, what is handed out and sampling are written. */
export const WAYS: readonly TestExecutor[] = [NATIVE, PLAIN];

/** The two samplers; a short run is one of native code. */
export const SAMPLERS: readonly TestExecutor[] = isShort ? [NATIVE] : [NATIVE, IDLE];

/** All that run networks: what each of them must do alike is in test/conformance. */
export const EXECUTORS: readonly TestExecutor[] = [NATIVE, RANKS, PLAIN, WASM, TENSORFLOW];

/** Executors that `--executor` takes. */
export const SERVED: readonly TestExecutor[] = EXECUTORS.filter(({ name }) =>
  (EXECUTOR_NAMES as readonly string[]).includes(name),
);

/** The same tests for each of the executors. */
export function describeExecutors(body: (executor: TestExecutor) => void, executors = EXECUTORS): void {
  for (const executor of executors) {
    if (executor.missing === null) {
      describe(executor.name, () => body(executor));
    } else {
      describe.skip(`${executor.name}, which is not here: ${executor.missing}`, () => body(executor));
    }
  }
}
