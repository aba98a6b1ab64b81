import { messageOf } from '../../base/error-text.js';
import { defaultThreads } from '../../base/topology.js';
import type { NetworkPlan } from '../../network/plan.js';
import { scoresByDistance } from '../../network/set-up-ops.js';
import {
  rowsOfOthers,
  rowsOfPictures,
  sharedCaches,
  statefulLayers,
  unevenLayers,
} from '../executors/cache-layers.js';
import type { Executor, ExecutorOptions } from '../executors/executor.js';
import {
  type ExecutorKind,
  ExecutorUnavailableError,
  type LoadableEngine,
} from '../executors/executor-kind.js';
import type { Gpu } from '../executors/tensorflow/gpu.js';

const GPU_HINT =
  'This machine has an NVIDIA GPU, which the tensorflow executor could use: run "skein setup tensorflow" (docs/tensorflow.md), or name the executor to hear no more of it.';

/**
 * The executor of @tensorflow/tfjs-node-gpu or tfjs-node, if it is set up. None of its code is loaded before something
 *   is opened.
 */
export const tensorflowKind: ExecutorKind = {
  name: 'tensorflow',
  // On a CPU the other executors are faster, so `auto` needs a GPU.
  isAutomatic: async () => {
    const { findInstallation, seesGpu } = await import('../executors/tensorflow/installation.js');
    const installation = findInstallation();
    return installation !== null && seesGpu(installation);
  },
  hint: async () => {
    const [{ findInstallation }, { hasNvidiaGpu }] = await Promise.all([
      import('../executors/tensorflow/installation.js'),
      import('../executors/tensorflow/nvidia-gpu.js'),
    ]);
    return findInstallation() === null && hasNvidiaGpu() ? GPU_HINT : null;
  },
  problem: async () => {
    const { findInstallation } = await import('../executors/tensorflow/installation.js');
    if (findInstallation() !== null) return null;
    return (await import('../executors/tensorflow/load-tensorflow.js')).MISSING;
  },
  supports: (plan) =>
    statefulLayers(plan, 'tensorflow') ??
    rowsOfOthers(plan, 'tensorflow') ??
    rowsOfPictures(plan, 'tensorflow') ??
    unevenLayers(plan, 'tensorflow') ??
    sharedCaches(plan, 'tensorflow') ??
    weightedMean(plan) ??
    scoresByDistance(plan, 'tensorflow'),
  computesWith: async () => {
    const { findInstallation, seesGpu } = await import('../executors/tensorflow/installation.js');
    const installation = findInstallation();
    const isGpu = installation !== null && seesGpu(installation);
    return { instructionSet: isGpu ? 'GPU' : 'CPU', threads: defaultThreads() };
  },
  threadsFor: (asked) => asked ?? defaultThreads(),
  kvDtypeFor: (weights) => (weights === 'f32' ? 'f32' : 'bf16'),
  measure: async (engine, options) => {
    const { measureTensorFlow } = await import('../executors/tensorflow/open-tensorflow-runner.js');
    const { weightBytes, workspaceBytes, kvCacheBytes } = measureTensorFlow(
      engine,
      options,
      await likelyGpu(),
    );
    // weights.bin is read once; only the copy stays in memory.
    const fixed = { packedWeights: weightBytes, storedWeights: 0, workspace: workspaceBytes };
    return { fixed, kvCache: kvCacheBytes };
  },
  deviceMemory: async () => {
    const gpu = await likelyGpu();
    return gpu === null ? null : { bytes: gpu.freeBytes, from: `the driver of ${gpu.name}` };
  },
  open: (engine, options) => open(engine, options, false),
  openAutomatically: (engine, options) => open(engine, options, true),
};

/** Why it cannot compute a plan that takes weighted means; null: the plan takes none. */
function weightedMean({ ops }: NetworkPlan): string | null {
  const isWeighted = ops.some((op) => op.op === 'meanPool' && op.weighted === true);
  return isWeighted ? 'The tensorflow executor takes no weighted means of sequences.' : null;
}

/** The GPU that would compute; null: TensorFlow computes on the CPU, or nothing is known of the GPU. Loads nothing. */
async function likelyGpu(): Promise<Gpu | null> {
  const [{ findInstallation, seesGpu }, { findGpu }] = await Promise.all([
    import('../executors/tensorflow/installation.js'),
    import('../executors/tensorflow/gpu.js'),
  ]);
  const installation = findInstallation();
  return installation !== null && seesGpu(installation) ? findGpu() : null;
}

/** `needsGpu`: fails without a GPU, since on a CPU another executor is faster. */
async function open(engine: LoadableEngine, options: ExecutorOptions, needsGpu: boolean): Promise<Executor> {
  await load(options.threads, needsGpu);
  const [{ PortableExecutor }, { openTensorFlowRunner }] = await Promise.all([
    import('../executors/portable/portable-executor.js'),
    import('../executors/tensorflow/open-tensorflow-runner.js'),
  ]);
  return PortableExecutor.open(engine, options, openTensorFlowRunner);
}

/**
 * Loads the library into this thread. @throws ExecutorUnavailableError if it does not load here: another executor may be
 * tried
 */
async function load(threads: number, needsGpu: boolean): Promise<void> {
  const [{ claimTensorFlow, releaseTensorFlow }, { loadTensorFlow }] = await Promise.all([
    import('../executors/tensorflow/thread-claim.js'),
    import('../executors/tensorflow/load-tensorflow.js'),
  ]);
  const noteLoaded = claimTensorFlow();
  process.once('exit', () => releaseTensorFlow());
  try {
    const { isUsingGpuDevice } = loadTensorFlow(threads).backend();
    noteLoaded();
    if (needsGpu && !isUsingGpuDevice) {
      throw new ExecutorUnavailableError(
        'TensorFlow sees no GPU, though it did when it was set up, or this machine has one; the CUDA version and the driver have to fit it: run "skein setup tensorflow --force" to try again.',
      );
    }
  } catch (error) {
    if (error instanceof ExecutorUnavailableError) throw error;
    releaseTensorFlow();
    throw new ExecutorUnavailableError(messageOf(error), { cause: error });
  }
}
