import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { PackedSequence } from '../../../callbacks/infer/instance-messages.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { BatchRow, InstanceRequest, InstanceSetup } from '../backend.js';
import { rowsOf } from './batch-rows.js';
import { ControlInputs } from './control-inputs.js';
import { SequenceStates } from './sequence-states.js';
import { readStates } from './state-tensors.js';

/**
 * What an instance of a model with sequences has besides its backend: control inputs for each request, and
 * the states of its sequences.
 */
export class SequenceRunner {
  readonly controls: ControlInputs;
  readonly states: SequenceStates;

  constructor(controls: ControlInputs, states: SequenceStates) {
    this.controls = controls;
    this.states = states;
  }

  /** null: the model has no sequences. @throws BackendError where an initial state cannot be read */
  static async open({ config, files, maxStateBytes }: InstanceSetup): Promise<SequenceRunner | null> {
    const { sequence_batching: batching } = config;
    if (batching === undefined) return null;
    const states = await readStates(config, files.directory);
    return new SequenceRunner(controlsOf(config)!, new SequenceStates(states, maxStateBytes));
  }

  /** Inputs of a request besides those that its client has sent. */
  inputsOf(sequence: PackedSequence): InferTensor[] {
    return [...this.controls.of(sequence), ...this.states.inputs(sequence.number)];
  }

  /** @param requests in the order of their slots @param count rows of the batch */
  rowsOf(requests: readonly InstanceRequest[], count: number): BatchRow[] {
    return rowsOf(requests, count, this.controls);
  }
}

/** null: the model has no sequences. */
export function controlsOf({
  sequence_batching: batching,
  max_batch_size,
}: ModelConfig): ControlInputs | null {
  return batching === undefined ? null : new ControlInputs(batching, max_batch_size > 0);
}
