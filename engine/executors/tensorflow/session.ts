import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ExecutorLostError } from '../executor.js';
import { problemOfDevice } from './device-problem.js';
import type { Graph } from './graph/graph.js';
import { type TensorFlow, TensorFlowError, type TensorHandle } from './load-tensorflow.js';

/** Value for a placeholder. The array is read while the call runs. */
export interface Feed {
  values: Float32Array | Int32Array;
  shape: number[];
}

/**
 * A graph that TensorFlow has loaded. `run` is one call into it and leaves no tensors: inputs and outputs
 * live only during the call.
 */
export class Session {
  readonly #tensorflow: TensorFlow;
  readonly #id: number;
  #isOpen = true;
  #lost: ExecutorLostError | null = null;

  constructor(tensorflow: TensorFlow, graph: Graph) {
    this.#tensorflow = tensorflow;
    const folder = mkdtempSync(join(tmpdir(), 'skein-tensorflow-'));
    try {
      writeFileSync(join(folder, 'saved_model.pb'), graph.toSavedModel());
      mkdirSync(join(folder, 'variables'));
      this.#id = tensorflow.backend().loadSavedModelMetaGraph(folder, 'serve');
    } catch (error) {
      throw deviceProblem('The network cannot be loaded', error);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  /**
   * Runs the graph and returns the values of these outputs, in order. @throws TensorFlowError; ExecutorLostError, then
   * in every later call too
   */
  run(feeds: Readonly<Record<string, Feed>>, outputs: readonly string[]): (Float32Array | Int32Array)[] {
    if (this.#lost !== null) throw this.#lost;
    const backend = this.#tensorflow.backend();
    const inputs: TensorHandle[] = [];
    const results: TensorHandle[] = [];
    try {
      for (const { values, shape } of Object.values(feeds)) {
        const dtype = values instanceof Float32Array ? 'float32' : 'int32';
        inputs.push(this.#tensorflow.tensor(values, shape, dtype));
      }
      const names = Object.keys(feeds).map((name) => ({ name: `${name}:0` }));
      const fetched = outputs.map((name) => (name.includes(':') ? name : `${name}:0`));
      results.push(...backend.runSavedModel(this.#id, inputs, names, fetched));
      return results.map((tensor) => tensor.dataSync() as Float32Array | Int32Array);
    } catch (error) {
      const problem = deviceProblem('TensorFlow failed', error);
      if (problem instanceof ExecutorLostError) this.#lost = problem;
      throw problem;
    } finally {
      for (const tensor of [...inputs, ...results]) tensor.dispose();
    }
  }

  /** Frees the graph with its variables. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#tensorflow.backend().deleteSavedModel(this.#id);
  }
}

const LESS_MEMORY =
  'lower the KV cache (--kv-cache-tokens, --memory-fraction), --max-batch-tokens or --max-active-requests';

function deviceProblem(what: string, error: unknown): Error {
  const { message, isLost } = problemOfDevice(what, error, LESS_MEMORY);
  return isLost ? new ExecutorLostError(message) : new TensorFlowError(message);
}
