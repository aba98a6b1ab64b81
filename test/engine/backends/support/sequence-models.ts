import type { InferSequence, InferTensor } from '../../../../callbacks/infer/infer-types.js';
import type { PackedSequence } from '../../../../callbacks/infer/instance-messages.js';
import type { InstanceRequest } from '../../../../engine/backends/backend.js';
import { checkConfig } from '../../../../models/repository/check-config.js';
import { completeConfig } from '../../../../models/repository/complete-config.js';
import type { ModelConfig } from '../../../../models/repository/model-config.js';
import { parseModelConfig } from '../../../../models/repository/read-model-config.js';

/** A checked configuration of X to Y, INT32 [-1], with this `sequence_batching` in YAML. */
export function sequenceConfig(batching: string, more = 'max_batch_size: 4'): ModelConfig {
  const text = `${more}
input: [{name: X, data_type: TYPE_INT32, dims: [-1]}]
output: [{name: Y, data_type: TYPE_INT32, dims: [-1]}]
sequence_batching: ${batching}
`;
  const written = parseModelConfig(text, 'c', 'yaml');
  const facts = { name: 'm', folder: 'm', backend: 'module', defaultFilename: 'model.mjs', told: {} };
  const config = completeConfig(written, facts);
  checkConfig(config, written);
  return config;
}

export const control = (name: string, fields: string) =>
  `{name: ${name}, control: [{kind: CONTROL_SEQUENCE_${name}, ${fields}}]}`;

/** The numbers of a tensor of INT32. */
export const numbers = ({ data }: Pick<InferTensor, 'data'>) => [...new Int32Array(data.slice().buffer)];

export function int32(name: string, values: readonly number[], shape = [1, values.length]): InferTensor {
  return { name, datatype: 'INT32', shape, data: new Uint8Array(Int32Array.from(values).buffer) };
}

/** A request in a slot, as an instance sees it; what it is sent lies in `sent`. */
export function slotRequest(
  sequence: Partial<PackedSequence> & Pick<InferSequence, 'id'>,
  inputs: readonly InferTensor[],
): InstanceRequest & { sent: (readonly InferTensor[])[] } {
  const sent: (readonly InferTensor[])[] = [];
  return {
    id: '',
    sequence: { number: 1, start: false, end: false, slot: 0, ...sequence },
    inputs,
    outputs: null,
    parameters: {},
    batchSize: 1,
    traceparent: null,
    send: (outputs) => sent.push(outputs),
    room: Promise.resolve(),
    isOver: false,
    isCancelled: false,
    isAgain: false,
    reschedule: () => {},
    end: () => {},
    fail: () => {},
    sent,
  };
}
