import { cpuQuota } from '../cpu-quota.js';
import type { ExecutorKind } from './executor-kind.js';

/** @tensorflow/tfjs-node-gpu or tfjs-node, where it is set up. Nothing of it is loaded before something is opened. */
export const tensorflowKind: ExecutorKind = {
  name: 'tensorflow',
  // On a CPU the others are faster.
  isAutomatic: async () => {
    const { findInstallation, seesGpu } = await import('../tensorflow/installation.js');
    const installation = findInstallation();
    return installation !== null && seesGpu(installation);
  },
  problem: async () => {
    const { findInstallation } = await import('../tensorflow/installation.js');
    if (findInstallation() !== null) return null;
    return (await import('../tensorflow/load-tensorflow.js')).MISSING;
  },
  computesWith: async () => {
    const { findInstallation, seesGpu } = await import('../tensorflow/installation.js');
    const installation = findInstallation();
    const isGpu = installation !== null && seesGpu(installation);
    return { instructionSet: isGpu ? 'GPU' : 'CPU', threads: cpuQuota() };
  },
  threadsFor: (asked) => asked ?? cpuQuota(),
  kvDtypeFor: (weights) => (weights === 'f32' ? 'f32' : 'bf16'),
  measure: async (engine, options) => {
    const { measureTensorFlow } = await import('../tensorflow/open-tensorflow-runner.js');
    const { weightBytes, workspaceBytes, kvCacheBytes } = measureTensorFlow(engine, options);
    // weights.bin is read once; what stays of it is the copy.
    const fixed = { packedWeights: weightBytes, storedWeights: 0, workspace: workspaceBytes };
    return { fixed, kvCache: kvCacheBytes };
  },
  open: async (engine, options) => {
    const [{ PortableExecutor }, { openTensorFlowRunner }] = await Promise.all([
      import('../portable/portable-executor.js'),
      import('../tensorflow/open-tensorflow-runner.js'),
    ]);
    return PortableExecutor.open(engine, options, openTensorFlowRunner);
  },
};
