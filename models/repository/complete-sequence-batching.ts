import type { ControlInput, SequenceBatching, SequenceState } from './model-config.js';

/** After which a sequence that sends nothing is over, where nothing or 0 is written. */
const DEFAULT_IDLE_US = 1_000_000;

/** As it is read: fields of messages that were left out are missing. */
type Written<T> = T extends readonly (infer Element)[]
  ? readonly Written<Element>[]
  : T extends object
    ? { [Field in keyof T]?: Written<T[Field]> }
    : T;

/**
 * `sequence_batching` with everything in it, with Triton's defaults: an idle time of a second, `direct` where no strategy is written, and
 * batches of max_batch_size preferred by `oldest`.
 */
export function sequencesWithAll(written: object, maxBatchSize: number): SequenceBatching {
  const { control_input, state, direct, oldest, ...more } = written as Written<SequenceBatching>;
  const preferred = [...(oldest?.preferred_batch_size ?? [])];
  const strategy =
    oldest === undefined
      ? { direct: { max_queue_delay_microseconds: 0, minimum_slot_utilization: 0, ...direct } }
      : {
          oldest: {
            max_candidate_sequences: 0,
            max_queue_delay_microseconds: 0,
            preserve_ordering: false,
            ...oldest,
            preferred_batch_size: preferred.length === 0 && maxBatchSize > 0 ? [maxBatchSize] : preferred,
          },
        };
  return {
    ...strategy,
    max_sequence_idle_microseconds: more.max_sequence_idle_microseconds || DEFAULT_IDLE_US,
    control_input: (control_input ?? []).map(controlWithAll),
    state: (state ?? []).map(stateWithAll),
    iterative_sequence: more.iterative_sequence ?? false,
  };
}

function controlWithAll({ name = '', control = [] }: Written<ControlInput>): ControlInput {
  return {
    name,
    control: control.map((one) => ({
      kind: 'CONTROL_SEQUENCE_START',
      data_type: 'TYPE_INVALID',
      ...one,
      int32_false_true: [...(one.int32_false_true ?? [])],
      fp32_false_true: [...(one.fp32_false_true ?? [])],
      bool_false_true: [...(one.bool_false_true ?? [])],
    })),
  };
}

function stateWithAll({ dims = [], initial_state = [], ...more }: Written<SequenceState>): SequenceState {
  const none = 'TYPE_INVALID' as SequenceState['data_type'];
  return {
    input_name: '',
    output_name: '',
    data_type: none,
    use_same_buffer_for_input_output: false,
    use_growable_memory: false,
    ...more,
    dims: [...dims],
    initial_state: initial_state.map((one) => ({
      data_type: none,
      name: '',
      ...one,
      dims: [...(one.dims ?? [])],
    })),
  };
}
