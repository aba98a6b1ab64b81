import { type Datatype, isDatatype } from '../../../../callbacks/infer/datatypes.js';
import { InferError } from '../../../../callbacks/infer/infer-error.js';
import type {
  InferParameters,
  InferRequest,
  InferSequence,
  InferTensor,
} from '../../../../callbacks/infer/infer-types.js';
import { whyNotSequenceText } from '../../../../callbacks/infer/sequence-id.js';
import type { TraceSpan } from '../../../../callbacks/infer/trace-span.js';
import { malformed } from '../../../serving/infer-failure.js';
import type { OutputWish } from '../../../serving/protocol/chosen-outputs.js';
import type { RegionAccess } from '../../../serving/protocol/region-access.js';
import { checkTextCount, countedElements } from '../../../serving/protocol/tensor-limits.js';
import type { SharedSpan } from '../../../serving/shared-memory/shared-regions.js';
import type { InferMessage, MessageInput, MessageParameter, MessageParameters } from './infer-message.js';
import { bytesOfContents, mostBytesOf } from './typed-contents.js';

/** A request of the protocol, and how its client wants the answer. */
export interface ReadRequest {
  request: InferRequest;
  /** Null: all outputs. */
  wishes: readonly OutputWish[] | null;
  /** A decoupled model's last answer is to be sent even where it has no tensors. */
  wantsEmptyFinal: boolean;
}

export interface ReadOptions {
  regions: RegionAccess;
  signal: AbortSignal;
  /** Name of the API key that sends it; '' where the server has none. */
  owner: string;
  /** Below which the request is recorded; undefined: it is not traced. */
  trace?: TraceSpan | undefined;
  /**
   * Called with the bytes of memory that tensors take in addition to the message.
   * @throws where there are none
   */
  hold(bytes: number): void;
}

/**
 * Makes the project's own request of a message. Words are Triton's, whose clients know them.
 * @throws InferError, GrpcError, and what `hold` and `regions` throw
 */
export async function readRequest(
  message: InferMessage,
  { regions, signal, owner, trace, hold }: ReadOptions,
): Promise<ReadRequest> {
  const { wantsEmptyFinal, ...about } = readParameters(message.parameters);
  const inputs = await readInputs(message, { regions, signal, hold });
  const wishes = message.outputs.length === 0 ? null : readWishes(message, regions);
  const outputs = wishes?.map(({ name }) => name) ?? null;
  const request = { id: message.id, inputs, outputs, ...about, signal, owner, ...(trace && { trace }) };
  return { request, wishes, wantsEmptyFinal };
}

type About = Pick<InferRequest, 'parameters' | 'sequence' | 'priority' | 'timeoutUs'>;

function readParameters(given: MessageParameters): About & { wantsEmptyFinal: boolean } {
  const others: Record<string, InferParameters[string]> = {};
  let id: InferSequence['id'] = 0n;
  let [start, end, wantsEmptyFinal] = [false, false, false];
  let [priority, timeoutUs] = [0, 0];
  for (const [name, parameter] of given) {
    if (name === 'sequence_id') id = sequenceId(parameter);
    else if (name === 'sequence_start') start = flagOf(name, parameter);
    else if (name === 'sequence_end') end = flagOf(name, parameter);
    else if (name === 'priority') priority = priorityOf(parameter);
    else if (name === 'timeout') timeoutUs = timeoutOf(parameter);
    else if (name === EMPTY_FINAL) wantsEmptyFinal = flagOf(name, parameter);
    else if (name.startsWith('triton_')) {
      throw malformed(
        `parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: ${EMPTY_FINAL}`,
      );
    } else others[name] = plainValue(name, parameter);
  }
  const sequence = id === 0n || id === '' ? null : { id, start, end };
  return { parameters: others, sequence, priority, timeoutUs, wantsEmptyFinal };
}

const EMPTY_FINAL = 'triton_enable_empty_final_response';

function flagOf(name: string, { kind, value }: MessageParameter): boolean {
  if (kind === 'bool') return value;
  throw malformed(`invalid value type for '${name}' parameter, expected bool_param.`);
}

function sequenceId(parameter: MessageParameter): InferSequence['id'] {
  if (parameter.kind === 'string') {
    const wrong = whyNotSequenceText(parameter.value);
    if (wrong !== null) throw new InferError(wrong, 'unsupported');
    return parameter.value;
  }
  // The number has no sign, whichever field it comes in.
  if (parameter.kind === 'int64') return BigInt.asUintN(64, BigInt(parameter.value));
  throw malformed("invalid value type for 'sequence_id' parameter, expected int64_param or string_param.");
}

function priorityOf(parameter: MessageParameter): number {
  if (parameter.kind === 'int64' && parameter.value < 0) {
    throw malformed("invalid value for 'priority', expected value >= 0.");
  }
  if (parameter.kind === 'int64' || parameter.kind === 'uint64') return counted(parameter.value);
  throw malformed("invalid value type for 'priority' parameter, expected int64_param or uint64_param.");
}

function timeoutOf(parameter: MessageParameter): number {
  if (parameter.kind !== 'int64') {
    throw malformed("invalid value type for 'timeout' parameter, expected int64_param.");
  }
  if (parameter.value < 0) throw malformed("invalid value for 'timeout', expected value >= 0.");
  return counted(parameter.value);
}

/** Beyond what JavaScript's numbers hold, the largest of these replaces it. */
function counted(value: number | bigint): number {
  return typeof value === 'number' ? value : Number.MAX_SAFE_INTEGER;
}

function plainValue(name: string, parameter: MessageParameter): InferParameters[string] {
  if (parameter.kind !== null && parameter.kind !== 'bytes') return parameter.value;
  throw malformed(
    `invalid value type for '${name}' parameter, expected int64_param, uint64_param, bool_param, string_param or double_param.`,
  );
}

async function readInputs(
  { model, inputs, raw }: InferMessage,
  { regions, signal, hold }: Omit<ReadOptions, 'owner'>,
): Promise<InferTensor[]> {
  const tensors: InferTensor[] = [];
  let numRaw = 0;
  let held = 0;
  const holdMore = (bytes: number) => {
    held += bytes;
    hold(held);
  };
  const given = inputs.map((input) => ({ input, ...headOf(input) }));
  checkTextCount(given);
  for (const { input, datatype, shape } of given) {
    const { name, contents } = input;
    const where = `input tensor '${name}' for model '${model}'`;
    const span = spanOf(input, (...part) => regions.input(...part));
    if (span !== null) {
      if (contents !== null)
        throw malformed(`unexpected 'content' provided when using shared memory for ${where}`);
      holdMore(span.byteSize);
      tensors.push({ name, datatype, shape, data: await span.read() });
    } else if (contents !== null) {
      if (raw.length > 0) {
        throw malformed(
          `contents field must not be specified when using raw_input_contents for '${name}' for model '${model}'`,
        );
      }
      const wanted = { model, name, datatype, count: countedElements(name, shape) };
      holdMore(mostBytesOf(wanted, contents));
      tensors.push({ name, datatype, shape, data: await bytesOfContents(wanted, contents, signal) });
    } else {
      const data = raw[numRaw++];
      if (data === undefined) throw malformed(`unable to find data for ${where} in request.`);
      tensors.push({ name, datatype, shape, data });
    }
  }
  if (raw.length > numRaw) {
    throw malformed(
      `request for model '${model}' has ${raw.length} raw_input_contents for ${numRaw} inputs that take them; as many are expected`,
    );
  }
  return tensors;
}

function headOf({ name, datatype, shape }: MessageInput): { datatype: Datatype; shape: number[] } {
  if (!isDatatype(datatype)) throw malformed(`invalid datatype for input ${name}`);
  const sizes = shape.map((size) => {
    if (typeof size === 'number' && size >= 0) return size;
    throw malformed(`the shape of input '${name}' has the size ${size}; a whole number from 0 is expected`);
  });
  countedElements(name, sizes);
  return { datatype, shape: sizes };
}

/** Outputs that are asked for by name, each once, as it was first asked for. */
function readWishes({ outputs }: InferMessage, regions: RegionAccess): OutputWish[] {
  const wishes = new Map<string, OutputWish>();
  for (const output of outputs) {
    const { name, parameters } = output;
    const region = spanOf(output, (...part) => regions.output(...part));
    const classification = classificationOf(parameters.get('classification'));
    if (region !== null && classification > 0) {
      throw malformed("output can't set both 'shared_memory_region' and 'classification'");
    }
    if (!wishes.has(name)) wishes.set(name, { name, classification, region });
  }
  return [...wishes.values()];
}

function classificationOf(parameter: MessageParameter | undefined): number {
  if (parameter === undefined) return 0;
  if (parameter.kind !== 'int64') {
    throw malformed("invalid value type for 'classification' parameter, expected int64_param");
  }
  if (parameter.value > 0) return counted(parameter.value);
  throw malformed("invalid value for 'classification' parameter, expected >= 0");
}

/** The part of shared memory that the parameters of a tensor name; null: they name none. */
function spanOf(
  { name, parameters }: { name: string; parameters: MessageParameters },
  find: (region: string, offset: number, byteSize: number) => SharedSpan,
): SharedSpan | null {
  const [region, offset, size] = SHARED.map((key) => parameters.get(key));
  for (const [i, given] of [offset, size].entries()) {
    const key = SHARED[i + 1]!;
    if (given === undefined) continue;
    if (region === undefined) {
      throw malformed(
        `'${key}' can not be specified without 'shared_memory_region' parameter for tensor '${name}'`,
      );
    }
    if (given.kind !== 'int64') throw ofOtherKind(key, name, 'int64_param');
  }
  if (region === undefined) return null;
  if (region.kind !== 'string') throw ofOtherKind('shared_memory_region', name, 'string_param');
  if (size === undefined) {
    throw malformed(
      `'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor '${name}'`,
    );
  }
  return find(region.value, placeOf(offset, region.value), placeOf(size, region.value));
}

const SHARED = ['shared_memory_region', 'shared_memory_offset', 'shared_memory_byte_size'] as const;

function ofOtherKind(key: string, tensor: string, expected: string) {
  return malformed(`invalid value type for '${key}' parameter for tensor '${tensor}', expected ${expected}.`);
}

function placeOf(parameter: MessageParameter | undefined, region: string): number {
  const value = parameter?.value ?? 0;
  if (typeof value === 'number' && value >= 0) return value;
  throw malformed(`Invalid offset + byte size for shared memory region: '${region}'`);
}
