import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { loadTensorFlow } from '../../executors/tensorflow/load-tensorflow.js';
import {
  BackendError,
  type BatchRow,
  type Instance,
  type InstanceRequest,
  type InstanceSetup,
} from '../backend.js';
import { threadsOf } from '../model-file.js';
import { RowRunner } from '../run-rows.js';
import { readSavedModel } from './saved-model-file.js';
import { SavedModelSession } from './saved-model-session.js';
import { chooseSignature } from './signature.js';
import { savedModelFolder } from './tensorflow-backend.js';

/** Bytes that failed runs may leave in TensorFlow's memory before the instance is restarted. */
const MAX_LOST_BYTES = 128 * 2 ** 20;

/** Opens a SavedModel in this worker, whose process nothing else uses TensorFlow in. @throws BackendError, TensorFlowError */
export async function openInstance({ files, config }: InstanceSetup): Promise<Instance> {
  const folder = savedModelFolder(files, config.default_model_filename);
  const chosen = chooseSignature(folder, await readSavedModel(folder), config.parameters);
  const interOp = threadsOf(config, 'TF_NUM_INTER_THREADS');
  // TensorFlow reads both from the environment of its process, once.
  process.env.TF_NUM_INTEROP_THREADS ??= String(interOp);
  const tensorflow = loadTensorFlow(threadsOf(config, 'TF_NUM_INTRA_THREADS'));
  return new TensorFlowInstance(new SavedModelSession(tensorflow, folder, chosen), config);
}

class TensorFlowInstance implements Instance {
  readonly #session: SavedModelSession;
  readonly #runner: RowRunner;

  constructor(session: SavedModelSession, config: ModelConfig) {
    this.#session = session;
    const run = (inputs: readonly InferTensor[], wanted: readonly string[]) => session.run(inputs, wanted);
    this.#runner = new RowRunner(config, run, session.flatInputs);
  }

  async execute(requests: readonly InstanceRequest[], rows?: readonly BatchRow[]): Promise<void> {
    try {
      await this.#runner.execute(requests, rows);
    } finally {
      this.#endWhereLost();
    }
  }

  close(): void {
    this.#session.close();
  }

  /** Ends after the batch that is being answered; another worker follows. */
  #endWhereLost(): void {
    const { lost, lostBytes } = this.#session;
    const why =
      lost ??
      (lostBytes > MAX_LOST_BYTES
        ? new BackendError(
            `Failed runs have left ${lostBytes} bytes of their inputs in TensorFlow's memory; the instance is started again.`,
          )
        : null);
    if (why === null) return;
    setImmediate(() => {
      throw why;
    });
  }
}
