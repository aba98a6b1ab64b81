import { randomFillSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { BufferPool } from '../../base/buffer-pool.js';
import { messageOf } from '../../base/error-text.js';
import { countElements } from '../../callbacks/infer/byte-elements.js';
import { datatypeOf, elementsIn } from '../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../callbacks/infer/infer-types.js';
import type { DataType, ModelConfig, ModelWarmup } from '../../models/repository/model-config.js';
import { bytesOfRow, warmupFile } from '../../models/repository/warmup.js';
import { BackendError, type Instance, type InstanceSetup } from './backend.js';
import type { AnswerSink } from './batch-answers.js';
import { packBatch } from './packed-batch.js';
import { RunningRequest } from './running-request.js';
import type { SequenceRunner } from './sequences/sequence-runner.js';
import { thrownText } from './thrown.js';

/** Most different reasons of failed requests of a sample that are reported. */
const MAX_REASONS = 4;

/**
 * Runs the samples of `model_warmup` on an instance that has no requests yet: `batch_size` requests with one
 * row each, together, `count` times. Nothing of it is counted, and answers are dropped.
 * @throws BackendError with the sample's name where a request of it fails, in Triton's words
 */
export async function warmUp(
  instance: Instance,
  { config, files }: InstanceSetup,
  sequences: SequenceRunner | null,
): Promise<void> {
  for (const sample of config.model_warmup ?? []) {
    if (sample.batch_size === 0) continue;
    const inputs = await warmupInputs(config, sample, files.directory);
    for (let i = 0; i < Math.max(1, sample.count); i++) {
      const reasons = await runSample(instance, { config, sequences }, sample, inputs);
      if (reasons.length === 0) continue;
      throw new BackendError(`failed to run warmup sample '${sample.name}': ${reasons.join('; ')}`);
    }
  }
}

/** Why requests of the sample failed. */
async function runSample(
  instance: Instance,
  { config, sequences }: { config: ModelConfig; sequences: SequenceRunner | null },
  { batch_size: batchSize }: ModelWarmup,
  inputs: Awaited<ReturnType<typeof warmupInputs>>,
): Promise<string[]> {
  const members = Array.from({ length: batchSize }, (_, slot) => ({
    id: '',
    inputs,
    outputs: null,
    parameters: {},
    batchSize: 1,
    // Each is a sequence that begins and ends with it, so that nothing is kept of it.
    packedSequence: sequences && { number: slot, slot, id: BigInt(slot + 1), start: true, end: true },
  }));
  // A batch has memory of its own: code may change it, or hand it on.
  const { bytes, requests } = packBatch(members, new BufferPool({ maxKept: 0 }));
  const reasons = new Set<string>();
  const running = requests.map(
    (request, i) => new RunningRequest(request, i, bytes, { config, sequences, answers: sinkOf(reasons) }),
  );
  try {
    await instance.execute(running, sequences?.rowsOf(running, batchSize));
    for (const request of running) request.end();
  } catch (error) {
    for (const request of running) request.fail(thrownText(error));
  }
  return [...reasons];
}

function sinkOf(reasons: Set<string>): AnswerSink {
  return {
    whyFull: () => null,
    respond: () => {},
    end: () => {},
    fail: (_, reason) => {
      if (reasons.size < MAX_REASONS) reasons.add(reason);
    },
    room: Promise.resolve(),
  };
}

type WarmupInput = ModelWarmup['inputs'][string];

/**
 * The inputs of one request of a sample: one row where the model takes batches. @throws BackendError for a file that is not what its input
 * takes
 */
function warmupInputs(
  config: ModelConfig,
  { inputs }: ModelWarmup,
  modelDirectory: string,
): Promise<InferTensor[]> {
  return Promise.all(
    Object.entries(inputs).map(async ([name, input]): Promise<InferTensor> => {
      const { data_type, dims } = input;
      // What the server itself gives the model of a sequence has no other size than that of the batch.
      const isOfClients = config.input.some((one) => one.name === name);
      const shape = config.max_batch_size > 0 && isOfClients ? [1, ...dims] : dims;
      return {
        name,
        datatype: datatypeOf(data_type),
        shape,
        data: await dataOf(name, input, modelDirectory),
      };
    }),
  );
}

async function dataOf(name: string, input: WarmupInput, modelDirectory: string): Promise<Uint8Array> {
  const { data_type: type, random_data: isRandom, input_data_file: filename } = input;
  if (filename !== undefined) return fileData(name, input, warmupFile(modelDirectory, filename));
  const bytes = new Uint8Array(bytesOfRow(input));
  // Texts are empty, as with Triton.
  if (isRandom === true && type !== 'TYPE_STRING') fillRandomly(bytes, type);
  return bytes;
}

async function fileData(name: string, input: WarmupInput, file: string): Promise<Uint8Array> {
  let data: Uint8Array;
  try {
    data = await readFile(file);
  } catch (error) {
    throw new BackendError(`${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  if (input.data_type !== 'TYPE_STRING') return data.subarray(0, bytesOfRow(input));
  const [found, expected] = [countElements(data), elementsIn(input.dims)];
  if (found === expected) return data;
  const what = found === null ? 'ends in the middle of an element' : `has ${found} elements`;
  throw new BackendError(
    `${file} ${what}; input '${name}' takes ${expected}, each after its length of 4 bytes.`,
  );
}

/** Bits of 1 in types of two bytes: whatever is below is at least 0 and less than 1. */
const ONE = { TYPE_FP16: 0x3c00, TYPE_BF16: 0x3f80 } as const;

/** Whole numbers over all of their type; floats at least 0 and less than 1, since bits at random are often no number. */
function fillRandomly(bytes: Uint8Array, type: DataType): void {
  const { buffer } = bytes;
  switch (type) {
    case 'TYPE_FP32':
      fill(new Float32Array(buffer), Math.random);
      break;
    case 'TYPE_FP64':
      fill(new Float64Array(buffer), Math.random);
      break;
    case 'TYPE_FP16':
    case 'TYPE_BF16':
      fill(new Uint16Array(buffer), () => Math.floor(ONE[type] * Math.random()));
      break;
    case 'TYPE_BOOL':
      fill(bytes, () => Math.round(Math.random()));
      break;
    default:
      randomFillSync(bytes);
  }
}

function fill(numbers: Float32Array | Float64Array | Uint16Array | Uint8Array, value: () => number): void {
  for (let i = 0; i < numbers.length; i++) numbers[i] = value();
}
