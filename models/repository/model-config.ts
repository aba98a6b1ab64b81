/**
 * A model's configuration, complete: fields as Triton's `ModelConfig` message names them, and as GET
 * /v2/models/M/config answers them. Fields that nothing reads here are refused
 * (refused-fields.ts). 64-bit numbers are JavaScript numbers: sizes stay below 2^53, which the reader checks; delays go up to
 * 2^64 - 1, as the nearest double.
 * Source: https://github.com/triton-inference-server/common, protobuf/model_config.proto.
 */
export interface ModelConfig {
  name: string;
  /** As the author wrote it; '' where `backend` says it all. */
  platform: string;
  backend: string;
  version_policy: VersionPolicy;
  /** 0: the model takes no batches, and its shapes are whole. */
  max_batch_size: number;
  input: ModelInput[];
  output: ModelOutput[];
  /** Inputs that the server makes of those of a batch; none: absent or empty. */
  batch_input?: BatchInput[];
  batch_output?: BatchOutput[];
  instance_group: InstanceGroup[];
  default_model_filename: string;
  /** Each with a `string_value`, as Triton has them. */
  parameters: Readonly<Record<string, { string_value: string }>>;
  model_transaction_policy: { decoupled: boolean };
  dynamic_batching?: DynamicBatching;
  sequence_batching?: SequenceBatching;
  ensemble_scheduling?: EnsembleScheduling;
  response_cache?: { enable: boolean };
  model_warmup?: ModelWarmup[];
  /** Whatever else the file says, as it was read. */
  [other: string]: unknown;
}

/** `TYPE_INT32` and the like; TYPE_STRING is BYTES. */
export type DataType =
  `TYPE_${'BOOL' | 'UINT8' | 'UINT16' | 'UINT32' | 'UINT64' | 'INT8' | 'INT16' | 'INT32' | 'INT64' | 'FP16' | 'FP32' | 'FP64' | 'BF16' | 'STRING'}`;

export interface ModelInput {
  name: string;
  data_type: DataType;
  /** Of pictures, which have three dimensions; its only effect is to show clients what is expected. */
  format?: 'FORMAT_NONE' | 'FORMAT_NHWC' | 'FORMAT_NCHW';
  /** Without the batch dimension; -1: any size. */
  dims: number[];
  /** The shape that the backend is given in the place of `dims`. */
  reshape?: { shape: number[] };
  is_shape_tensor: boolean;
  /** Requests whose sizes of this input differ go into one batch; a model that takes one tensor of the batch gets a list of all elements. */
  allow_ragged_batch: boolean;
  optional: boolean;
}

export interface ModelOutput {
  name: string;
  data_type: DataType;
  dims: number[];
  reshape?: { shape: number[] };
  /** A file of the model's folder with a label a line, for classification; '': none. */
  label_filename: string;
  is_shape_tensor: boolean;
}

/** What a batch input says of its source; see batch-inputs.ts. */
export type BatchInputKind =
  | 'BATCH_ELEMENT_COUNT'
  | 'BATCH_ACCUMULATED_ELEMENT_COUNT'
  | 'BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO'
  | 'BATCH_MAX_ELEMENT_COUNT_AS_SHAPE'
  | 'BATCH_ITEM_SHAPE'
  | 'BATCH_ITEM_SHAPE_FLATTEN';

/** An input of the model that clients do not send: it describes the requests of the batch. */
export interface BatchInput {
  kind: BatchInputKind;
  /** Inputs of the model, which all get the same. */
  target_name: string[];
  data_type: 'TYPE_INT32' | 'TYPE_FP32';
  /** One of the inputs that clients send. */
  source_input: string[];
}

/** How outputs of a batch are split: a size of -1 of an output is the size that the request's source input has there. */
export interface BatchOutput {
  target_name: string[];
  kind: 'BATCH_SCATTER_WITH_INPUT_SHAPE';
  /** One of the inputs that clients send. */
  source_input: string[];
}

export type VersionPolicy =
  | { latest: { num_versions: number } }
  | { all: Record<string, never> }
  | { specific: { versions: number[] } };

export interface InstanceGroup {
  name: string;
  /** GPU kinds are refused by name: backends run on the processor. */
  kind: 'KIND_AUTO' | 'KIND_CPU';
  count: number;
  /** What an execution of an instance needs, where the server limits rates. Absent: nothing. */
  rate_limiter?: ModelRateLimiter;
}

export interface ModelRateLimiter {
  resources: {
    name: string;
    /** One pool for the whole system; false: one for each device, of which there is one here. */
    global: boolean;
    /** Copies that an execution keeps. */
    count: number;
  }[];
  /** An instance of priority 2 has half the chances of one of priority 1; 0 is 1. */
  priority: number;
}

export interface QueuePolicy {
  timeout_action: 'REJECT' | 'DELAY';
  /** 0: no timeout. */
  default_timeout_microseconds: number;
  /** A request's own timeout may shorten the default, never lengthen it. */
  allow_timeout_override: boolean;
  /** 0: no limit. */
  max_queue_size: number;
}

export interface DynamicBatching {
  preferred_batch_size: number[];
  max_queue_delay_microseconds: number;
  preserve_ordering: boolean;
  /** 0: one level. */
  priority_levels: number;
  default_priority_level: number;
  default_queue_policy: QueuePolicy;
  priority_queue_policy: Readonly<Record<string, QueuePolicy>>;
}

/** Information on the sequence of a request that a model without state of its own receives. */
export type SequenceControl =
  | 'CONTROL_SEQUENCE_START'
  | 'CONTROL_SEQUENCE_READY'
  | 'CONTROL_SEQUENCE_END'
  | 'CONTROL_SEQUENCE_CORRID';

/** An input that the server fills in: a flag, whose two values are listed in its type, or a sequence's id. */
export interface ControlInput {
  name: string;
  /** One. */
  control: {
    kind: SequenceControl;
    /** False and true of a flag of this type; of the three one is given. */
    int32_false_true: number[];
    fp32_false_true: number[];
    bool_false_true: boolean[];
    /** Of CORRID: TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 or TYPE_STRING. */
    data_type: DataType | 'TYPE_INVALID';
  }[];
}

/** Output `output_name` of a request is input `input_name` of the next one of its sequence. */
export interface SequenceState {
  input_name: string;
  output_name: string;
  data_type: DataType;
  /** Without the batch dimension; -1: any size. */
  dims: number[];
  /** What the first request of a sequence is given; at most one. None: whatever is there. */
  initial_state: {
    data_type: DataType;
    dims: number[];
    name: string;
    zero_data?: boolean;
    /** A file below initial_state/ in the model's folder. */
    data_file?: string;
  }[];
  use_same_buffer_for_input_output: boolean;
  use_growable_memory: boolean;
}

export interface SequenceBatching {
  /** After which a sequence that sends nothing is over. */
  max_sequence_idle_microseconds: number;
  control_input: ControlInput[];
  state: SequenceState[];
  iterative_sequence: boolean;
  /** Where neither strategy is given, it is this one. */
  direct?: { max_queue_delay_microseconds: number; minimum_slot_utilization: number };
  oldest?: {
    max_candidate_sequences: number;
    preferred_batch_size: number[];
    max_queue_delay_microseconds: number;
    preserve_ordering: boolean;
  };
}

/** A model of an ensemble, with the ensemble's tensor of each of its inputs and outputs. */
export interface EnsembleStep {
  model_name: string;
  /** -1: the latest. */
  model_version: number;
  input_map: Readonly<Record<string, string>>;
  output_map: Readonly<Record<string, string>>;
  model_namespace: string;
}

export interface EnsembleScheduling {
  step: EnsembleStep[];
  /** Requests that each step may have at its model at once, of all requests of the ensemble; 0 or absent: any number. */
  max_inflight_requests?: number;
}

/** A batch that instances run before the model is ready. */
export interface ModelWarmup {
  name: string;
  batch_size: number;
  inputs: Readonly<
    Record<
      string,
      {
        data_type: DataType;
        dims: number[];
        zero_data?: boolean;
        random_data?: boolean;
        /** A file below warmup/ in the model's folder. */
        input_data_file?: string;
      }
    >
  >;
  /** Times that it is run; 0 is once. */
  count: number;
}
