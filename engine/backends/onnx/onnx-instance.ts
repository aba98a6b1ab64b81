import { join } from 'node:path';
import { messageOf } from '../../../base/error-text.js';
import { asSentence } from '../../../base/sentences.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import {
  BackendError,
  type BatchRow,
  type Instance,
  type InstanceRequest,
  type InstanceSetup,
} from '../backend.js';
import { threadsOf } from '../model-file.js';
import { RowRunner } from '../run-rows.js';
import {
  loadOnnxRuntime,
  ONLY_FATAL,
  type OnnxRuntime,
  type OnnxSession,
  type OnnxTensor,
} from './onnx-runtime.js';
import { fromOnnx, toOnnx } from './onnx-tensors.js';

/** Opens an ONNX file in this worker. @throws BackendError */
export async function openInstance({ files, config }: InstanceSetup): Promise<Instance> {
  const runtime = loadOnnxRuntime();
  const path = join(files.versionDirectory, config.default_model_filename || 'model.onnx');
  const session = await openSession(runtime, path, threadsOf(config, 'intra_op_thread_count'), config);
  return new OnnxInstance(runtime, session, config);
}

/** @throws BackendError where the file is no model that ONNX Runtime reads */
export async function openSession(
  runtime: OnnxRuntime,
  path: string,
  intraOpNumThreads: number,
  config?: ModelConfig,
): Promise<OnnxSession> {
  try {
    return await runtime.InferenceSession.create(path, {
      intraOpNumThreads,
      interOpNumThreads: config === undefined ? 1 : threadsOf(config, 'inter_op_thread_count'),
      graphOptimizationLevel: 'all',
      logSeverityLevel: ONLY_FATAL,
    });
  } catch (error) {
    throw new BackendError(`${path} cannot be opened: ${asSentence(messageOf(error))}`, { cause: error });
  }
}

class OnnxInstance implements Instance {
  readonly #session: OnnxSession;
  readonly #runner: RowRunner;

  constructor(runtime: OnnxRuntime, session: OnnxSession, config: ModelConfig) {
    this.#session = session;
    const flat = session.inputMetadata.filter(({ shape }) => shape?.length === 1);
    const run = async (inputs: readonly InferTensor[], wanted: readonly string[]) => {
      const feeds: Record<string, OnnxTensor> = {};
      for (const input of inputs) feeds[input.name] = toOnnx(runtime, input);
      const results = await session.run(feeds, wanted);
      return wanted.map((name) => fromOnnx(name, results[name]!));
    };
    this.#runner = new RowRunner(config, run, new Set(flat.map(({ name }) => name)));
  }

  execute(requests: readonly InstanceRequest[], rows?: readonly BatchRow[]): Promise<void> {
    return this.#runner.execute(requests, rows);
  }

  close(): Promise<void> {
    return this.#session.release();
  }
}
