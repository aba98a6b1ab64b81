import { elementsIn } from '../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../models/repository/model-config.js';
import { BackendError, type BatchRow, type InstanceRequest } from './backend.js';
import { gatherRows, splitRows } from './gather.js';
import { BatchInputs, type DescribedRow } from './ragged/batch-inputs.js';
import { ScatteredOutputs } from './ragged/scattered-outputs.js';
import { modelInputs, reshaped } from './reshaped.js';
import { byStateSizes, rowOf } from './sequences/batch-rows.js';
import type { ControlInputs } from './sequences/control-inputs.js';
import { controlsOf } from './sequences/sequence-runner.js';
import { thrownText } from './thrown.js';

/** Runs rows: outputs of these names for inputs of all of them. */
type RunTensors = (
  inputs: readonly InferTensor[],
  wanted: readonly string[],
) => readonly InferTensor[] | Promise<readonly InferTensor[]>;

/**
 * Runs batches as one, for a backend that takes one tensor of each input, and gives each request its rows of the outputs.
 *
 *   a: INPUT0 [2, 16]  --+                                       +--> a: OUTPUT0 [2, 16]
 *   b: INPUT0 [1, 16]  --+--> INPUT0 [3, 16] --run--> OUTPUT0 [3, 16] +--> b: OUTPUT0 [1, 16]
 *
 * A ragged input is a list of the elements of all requests, [32] and [16] as [48], described by batch inputs; an output may be scattered by its shapes.
 * Where that fails, each request is run alone, so that those which can be answered are; sequences, whose rows have places, fail together.
 */
export class RowRunner {
  readonly #config: ModelConfig;
  readonly #run: RunTensors;
  /** Inputs of the model that are a number for each row and no list of numbers. */
  readonly #flat: ReadonlySet<string>;
  readonly #batchInputs: BatchInputs;
  readonly #scattered: ScatteredOutputs;
  readonly #controls: ControlInputs | null;
  readonly #stateInputs: ReadonlySet<string>;
  readonly #stateOutputs: readonly string[];

  constructor(config: ModelConfig, run: RunTensors, flat: ReadonlySet<string>) {
    this.#config = config;
    this.#run = run;
    this.#flat = flat;
    this.#batchInputs = new BatchInputs(config);
    this.#scattered = new ScatteredOutputs(config);
    this.#controls = controlsOf(config);
    const states = config.sequence_batching?.state ?? [];
    this.#stateInputs = new Set(states.map((state) => state.input_name));
    this.#stateOutputs = states.map((state) => state.output_name);
  }

  get #isBatched(): boolean {
    return this.#config.max_batch_size > 0;
  }

  /**
   * @param rows of models in which each sequence has its own @throws what `run` throws for a request that is alone or of a sequence, and
   * BackendError for outputs that do not fit
   */
  async execute(requests: readonly InstanceRequest[], rows?: readonly BatchRow[]): Promise<void> {
    for (const group of this.#groups(rows ?? requests.map(rowOf))) await this.#executeTogether(group);
  }

  /** Rows that can be run at once: states of other sizes cannot be rows of one tensor. */
  #groups(rows: readonly BatchRow[]): readonly (readonly BatchRow[])[] {
    if (this.#controls === null || this.#stateInputs.size === 0) return [rows];
    const keepsSlots = this.#config.sequence_batching!.oldest === undefined;
    return byStateSizes(rows, this.#stateInputs, { controls: this.#controls, keepsSlots });
  }

  async #executeTogether(rows: readonly BatchRow[]): Promise<void> {
    let outputs: readonly InferTensor[];
    try {
      outputs = await this.#run(this.#inputs(rows), this.#wanted(rows));
    } catch (error) {
      if (rows.length === 1 || this.#controls !== null) throw error;
      for (const row of rows) await this.#executeAlone(row);
      return;
    }
    this.#send(rows, outputs);
  }

  async #executeAlone(row: BatchRow): Promise<void> {
    try {
      await this.#executeTogether([row]);
    } catch (error) {
      row.request?.fail(`the model '${this.#config.name}' failed: ${thrownText(error)}`);
    }
  }

  /**
   * The inputs of rows, in the shapes that the model itself has. An optional one that no request gave is left
   * out.
   */
  #inputs(rows: readonly BatchRow[]): InferTensor[] {
    const own = this.#config.input.flatMap(({ name, reshape, allow_ragged_batch: isRagged }) => {
      const whole = isRagged ? listOf(rows, name) : inputOf(rows, name);
      if (whole === null) return [];
      return [reshape === undefined || isRagged ? whole : reshaped(whole, reshape.shape, this.#isBatched)];
    });
    const described = this.#batchInputs.of(rows.map((row) => this.#described(row)));
    const made = this.#batchInputs.names.map((_, i) => gatherRows(described.map((inputs) => inputs[i]!)));
    const controls = (this.#controls?.names ?? []).map((name) => {
      const whole = inputOf(rows, name)!;
      return this.#flat.has(name) ? { ...whole, shape: [elementsIn(whole.shape)] } : whole;
    });
    return [...own, ...made, ...controls, ...Array.from(this.#stateInputs, (name) => inputOf(rows, name)!)];
  }

  /** A row in the shapes that the model itself has. */
  #described({ inputs, batchSize }: BatchRow): DescribedRow {
    return { inputs: modelInputs(this.#config, inputs), batchSize };
  }

  /** Outputs that some request wants, in the configuration's order, and states: no other is computed. */
  #wanted(rows: readonly BatchRow[]): string[] {
    const names = [
      ...this.#config.output.map(({ name }) => name).filter((name) => !this.#stateOutputs.includes(name)),
      ...this.#stateOutputs,
    ];
    const asked = rows.flatMap(({ request }) => (request === null ? [] : [request.outputs]));
    if (asked.includes(null)) return names;
    const some = new Set([...asked.flatMap((one) => one!), ...this.#stateOutputs]);
    return names.filter((name) => some.has(name));
  }

  /** Sends each request its rows of the outputs that it wants, in the shapes that the configuration shows to clients. */
  #send(rows: readonly BatchRow[], outputs: readonly InferTensor[]): void {
    const parts = outputs.map((output) => this.#rowsOf(output, rows));
    for (const [i, { request }] of rows.entries()) {
      if (request === null) continue;
      const own = parts.map((part) => part[i]!);
      const { outputs: names } = request;
      const isFor = (name: string) =>
        names === null || names.includes(name) || this.#stateOutputs.includes(name);
      request.send(own.filter(({ name }) => isFor(name)));
    }
  }

  #rowsOf(tensor: InferTensor, rows: readonly BatchRow[]): readonly InferTensor[] {
    if (this.#scattered.has(tensor.name))
      return this.#scattered.split(
        tensor,
        rows.map((row) => this.#described(row)),
      );
    const sizes = rows.map(({ batchSize }) => batchSize);
    const output = this.#config.output.find(({ name }) => name === tensor.name);
    const shown = output?.reshape === undefined ? tensor : reshaped(tensor, output.dims, this.#isBatched);
    return this.#isBatched ? splitRows(shown, sizes) : [shown];
  }
}

/** An input of all rows as one tensor; null: no row has it. @throws BackendError where some have it and others do not */
function inputOf(rows: readonly BatchRow[], name: string): InferTensor | null {
  const given = partsOf(rows, name);
  return given.length === 0 ? null : gatherRows(given);
}

/** The elements of an input of all rows as one list; null: no row has it. @throws BackendError where some have it and others do not */
function listOf(rows: readonly BatchRow[], name: string): InferTensor | null {
  const given = partsOf(rows, name).map((part) => ({ ...part, shape: [elementsIn(part.shape)] }));
  return given.length === 0 ? null : gatherRows(given);
}

function partsOf(rows: readonly BatchRow[], name: string): InferTensor[] {
  const parts = rows.map(({ inputs }) => inputs.find((input) => input.name === name));
  const given = parts.filter((part) => part !== undefined);
  if (given.length > 0 && given.length < parts.length)
    throw new BackendError(`Input '${name}' is not in every request of the batch.`);
  return given;
}
