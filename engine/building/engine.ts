import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { asSentence } from '../../base/sentences.js';
import { SkeinError } from '../../base/skein-error.js';
import { readProblem } from '../../base/system-problem.js';
import { planNetwork } from '../../models/architectures/index.js';
import type { EncoderConfig } from '../../models/encoder-config.js';
import type { ModelConfig } from '../../models/model-config.js';
import type { NetworkPlan, PlanWeight } from '../../network/plan.js';
import type { EnginePrecision, OutputPrecision } from '../directory/engine-directory.js';
import {
  type EngineManifest,
  type EngineTensor,
  FORMAT_VERSIONS,
  tensorsByWeight,
} from '../directory/engine-directory.js';
import { withFoundChecksums } from '../directory/source-checksums-file.js';
import { areWholePieces, loadableTensors, presentSource } from '../directory/source-tensors.js';
import type { WeightPart } from '../directory/stored-precision.js';
import { holdsRows, storedBytes, TENSOR_PRECISIONS } from '../directory/weight-blocks.js';
import type { LoadableEngine } from '../executors/executor-kind.js';
import { outputWeights, PRECISIONS, ROUTER_PRECISION, routerWeights } from './weight-precision.js';

/** An engine directory is invalid. The message names file, expected and found. */
export class EngineError extends SkeinError {
  override name = 'EngineError';
  override readonly code = 'SKEIN_ENGINE';
}

/** An engine directory, opened and checked; its weights are only ever touched by native code. */
export interface Engine {
  /** The folder, or the GGUF that is computed with as it lies (stored-engine.ts). */
  directory: string;
  manifest: EngineManifest;
  plan: NetworkPlan;
  weightsFile: string;
  /** See LoadableEngine. */
  held?: Uint8Array;
}

/** The parts of an engine that an executor needs. Weights packed for it are kept in the engine's folder. */
export function loadableEngine({ directory, manifest, plan, weightsFile, held }: Engine): LoadableEngine {
  const own = held === undefined ? {} : { held };
  return { plan, weightsFile, tensors: loadableTensors(manifest), packedFolder: directory, ...own };
}

/** Each tensor begins at a multiple of this many bytes of weights.bin. */
const TENSOR_ALIGNMENT = 64;
const MAX_MANIFEST_BYTES = 64 * 1024 * 1024;

/**
 * Places of a plan's weights in weights.bin: one after another in the plan's order. Vectors and routers are always f32.
 *
 * @param storedParts parts of a matrix whose precision is 'stored'
 * @param isElsewhere true for a part that lies in the model's file, and takes no place in weights.bin
 * @returns all tensors, the length of weights.bin, and the tensors that lie elsewhere
 */
export function layOutWeights(
  plan: NetworkPlan,
  precision: EnginePrecision,
  outputPrecision: OutputPrecision,
  storedParts: (weight: PlanWeight) => readonly WeightPart[],
  isElsewhere: (weight: PlanWeight, part: WeightPart, firstRow: number) => boolean = () => false,
): { tensors: EngineTensor[]; byteLength: number; elsewhere: EngineTensor[] } {
  let byteLength = 0;
  const precisionOf = precisions(plan, precision, outputPrecision);
  const tensors: EngineTensor[] = [];
  const elsewhere: EngineTensor[] = [];
  for (const weight of plan.weights) {
    const { name, rows, columns } = weight;
    const wanted = precisionOf(weight);
    let firstRow = 0;
    for (const part of wanted === 'stored' ? storedParts(weight) : [{ dtype: wanted, rows }]) {
      const size = storedBytes(part.dtype, part.rows, columns);
      const isHere = !isElsewhere(weight, part, firstRow);
      const offset = isHere ? Math.ceil(byteLength / TENSOR_ALIGNMENT) * TENSOR_ALIGNMENT : 0;
      if (isHere) byteLength = offset + size;
      if (!Number.isSafeInteger(byteLength))
        throw new EngineError(`The weights of this model are too large.`);
      const place = firstRow === 0 ? {} : { firstRow };
      const tensor = { name, ...part, ...place, columns, offset, byteLength: size };
      tensors.push(tensor);
      if (!isHere) elsewhere.push(tensor);
      firstRow += part.rows;
    }
  }
  return { tensors, byteLength, elsewhere };
}

/** The precision of each weight; that of a matrix may be 'stored'. */
function precisions(
  plan: NetworkPlan,
  precision: EnginePrecision,
  outputPrecision: OutputPrecision,
): (weight: PlanWeight) => EnginePrecision {
  const outputs = outputWeights(plan);
  const routers = routerWeights(plan);
  return ({ name, kind }) => {
    if (kind === 'vector') return 'f32';
    if (outputs.has(name)) return outputPrecision;
    return routers.has(name) ? ROUTER_PRECISION : precision;
  };
}

/** What engine.json says, without the weights next to it. @throws EngineError as openEngine */
export function readEngineFacts(path: string): Pick<Engine, 'manifest' | 'plan'> {
  const directory = resolve(path);
  const manifest = readManifest(join(directory, 'engine.json'));
  return { manifest, plan: planOf(directory, manifest) };
}

/** Opens an engine directory. @throws EngineError if another version wrote it, or it is incomplete or damaged */
export function openEngine(path: string): Engine {
  const directory = resolve(path);
  const { manifest, plan } = readEngineFacts(directory);
  const weightsFile = join(directory, 'weights.bin');
  checkTensors(weightsFile, manifest, plan);
  manifest.tensors = withFoundChecksums(directory, manifest.tensors);
  if (manifest.sourceFile !== undefined) manifest.sourceFile = presentSource(manifest.sourceFile);
  checkLength(weightsFile, manifest.weightsByteLength);
  if (!statSync(join(directory, 'tokenizer.json'), { throwIfNoEntry: false })?.isFile()) {
    throw new EngineError(`${directory}: tokenizer.json is missing.`);
  }
  return { directory, manifest, plan, weightsFile };
}

/** @throws EngineError for a file of weights that is missing, or longer or shorter than this */
export function checkLength(weightsFile: string, expected: number): void {
  const size = statSync(weightsFile, { throwIfNoEntry: false })?.size;
  if (size === expected) return;
  const found = size === undefined ? 'no such file' : `${size} bytes`;
  throw new EngineError(`${weightsFile}: should be ${expected} bytes long, found ${found}.`);
}

/** Why a folder without engine.json is no engine directory. */
function notAnEngine(file: string): EngineError {
  const path = dirname(file);
  if (!isModel(path)) return new EngineError(`${file}: no such file; is this an engine directory?`);
  return new EngineError(
    `${path} is a model, not an engine directory; skein build ${path} -o ENGINE makes one, and so does buildEngine.`,
  );
}

/** True for a checkpoint, and for a GGUF file or a folder with one. */
function isModel(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path.endsWith('.gguf');
  return readdirSync(path).some((name) => name === 'config.json' || name.endsWith('.gguf'));
}

/** What the JSON file of an engine has. @throws EngineError */
export function readManifestText(file: string): unknown {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) throw notAnEngine(file);
  if (size > MAX_MANIFEST_BYTES)
    throw new EngineError(`${file}: is ${size} bytes long, too long for an ${basename(file)}.`);
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new EngineError(`${file}: cannot be read: ${readProblem(error)}`);
  }
}

function readManifest(file: string): EngineManifest {
  const manifest = readManifestText(file) as Partial<EngineManifest> | null;
  const version = manifest?.formatVersion;
  if (manifest === null || !FORMAT_VERSIONS.includes(version as number)) {
    throw new EngineError(
      `${file}: has format version ${version}, expected ${FORMAT_VERSIONS[0]} to ${FORMAT_VERSIONS.at(-1)}; build the engine again.`,
    );
  }
  checkPrecision(file, 'precision', manifest.precision);
  checkPrecision(file, 'outputPrecision', manifest.outputPrecision);
  const { precision, outputPrecision, maxInputLen, maxSeqLen, weightsByteLength, config, tensors, source } =
    manifest;
  const complete =
    isPrecision(precision) &&
    isPrecision(outputPrecision) &&
    [maxInputLen, maxSeqLen, weightsByteLength].every((value) => Number.isSafeInteger(value) && value! > 0) &&
    typeof config === 'object' &&
    typeof source === 'object' &&
    Array.isArray(tensors);
  if (!complete) throw new EngineError(`${file}: is not a complete engine.json.`);
  return manifest as EngineManifest;
}

/** Refuses a precision that no kernel of this version has, by name; the caller checks that there is one at all. */
function checkPrecision(file: string, field: string, value: unknown): void {
  if (typeof value !== 'string' || isPrecision(value)) return;
  throw new EngineError(
    `${file}: ${field} is "${value}"; on every instruction set this version runs ${PRECISIONS.join(', ')}.`,
  );
}

function isPrecision(value: unknown): value is EnginePrecision {
  return PRECISIONS.some((precision) => precision === value);
}

function planOf(directory: string, manifest: EngineManifest): NetworkPlan {
  const { numLayers, experts } = manifest.config ?? {};
  checkExpertsOf(directory, numLayers, experts);
  checkEncoderOf(directory, manifest);
  // Each layer and each expert has tensors of its own, so a plan is never longer than the list in its file.
  const inLayer = experts?.count ?? 1;
  const dense = experts?.layers?.filter((has) => !has).length ?? 0;
  if (!((numLayers - dense) * inLayer + dense <= manifest.tensors.length)) {
    const layers =
      experts === undefined ? `${numLayers} layers` : `${numLayers - dense} layers of ${inLayer} experts`;
    throw new EngineError(
      `${directory}: engine.json has ${layers}, but only ${manifest.tensors.length} tensors; these are not those of the network.`,
    );
  }
  try {
    return planNetwork(manifest.config);
  } catch (error) {
    throw new EngineError(
      `${directory}: its configuration makes no network: ${asSentence(messageOf(error))}`,
    );
  }
}

/** Numbers of experts that are none would make networks of other ones, or errors that name no file. */
function checkExpertsOf(directory: string, numLayers: number, experts: ModelConfig['experts']): void {
  if (experts === undefined) return;
  const { count, used, width, normalize, sharedWidth = 1, layers } = experts ?? {};
  const isRight =
    [count, used, width, sharedWidth].every((number) => Number.isSafeInteger(number) && number > 0) &&
    typeof normalize === 'boolean';
  if (!isRight)
    throw new EngineError(
      `${directory}: experts in the configuration of engine.json should have count, used and width as whole numbers above 0 and normalize as true or false, found ${JSON.stringify(experts)}.`,
    );
  const isList = Array.isArray(layers) && layers.every((has) => typeof has === 'boolean');
  if (layers === undefined || (isList && layers.length === numLayers)) return;
  throw new EngineError(
    `${directory}: layers of experts in the configuration of engine.json should be true or false for each of ${numLayers} layers, found ${JSON.stringify(layers)}.`,
  );
}

/** Engines of encoders that were built before a head had layers say what they are in another way. */
function checkEncoderOf(directory: string, { config, source }: EngineManifest): void {
  const encoder: Partial<EncoderConfig> | undefined = config?.encoder;
  if (encoder === undefined) return;
  if (typeof encoder?.bothWays === 'boolean' && Array.isArray(encoder.head?.layers)) return;
  const model = typeof source?.path === 'string' ? source.path : 'MODEL';
  throw new EngineError(
    `${directory}: an earlier version built this encoder, and described it in another way; build it again by skein build ${model} -o ${directory} (a model that is given in the place of an engine is built again by itself).`,
  );
}

type TensorFacts = Pick<
  EngineManifest,
  'precision' | 'outputPrecision' | 'weightsByteLength' | 'tensors' | 'sourceFile'
>;

/** Checks that the tensors are those of the plan, at the places where this version would put them. */
export function checkTensors(file: string, manifest: TensorFacts, plan: NetworkPlan): void {
  const told = tensorsByWeight(manifest.tensors.filter((tensor) => typeof tensor?.name === 'string'));
  const partsOf = (weight: PlanWeight) => toldParts(told.get(weight.name) ?? [], weight);
  const elsewhere = new Set(
    manifest.tensors.flatMap((one) =>
      one?.pieces === undefined ? [] : [`${one.name}\0${one.firstRow ?? 0}`],
    ),
  );
  const expected = layOutWeights(
    plan,
    manifest.precision,
    manifest.outputPrecision,
    partsOf,
    ({ name }, _, firstRow) => elsewhere.has(`${name}\0${firstRow}`),
  );
  const fits =
    areWholePieces(manifest, plan) &&
    manifest.weightsByteLength === expected.byteLength &&
    manifest.tensors.length === expected.tensors.length &&
    expected.tensors.every((tensor, i) => {
      const found = manifest.tensors[i];
      const keys = ['name', 'dtype', 'firstRow', 'rows', 'columns', 'offset', 'byteLength'] as const;
      return keys.every((key) => found?.[key] === tensor[key]);
    });
  if (!fits) throw new EngineError(`${file}: its tensors in engine.json are not those of the network.`);
}

/**
 * Parts of a weight that the manifest lists; none if they are not the weight's rows in precisions that can
 * hold them.
 */
function toldParts(parts: readonly EngineTensor[], { rows, columns }: PlanWeight): WeightPart[] {
  const isRight = ({ dtype, rows: own }: WeightPart) =>
    TENSOR_PRECISIONS.includes(dtype) && Number.isSafeInteger(own) && own > 0 && holdsRows(dtype, columns);
  const sum = parts.reduce((total, part) => total + part.rows, 0);
  return sum === rows && parts.every(isRight)
    ? parts.map((part) => ({ dtype: part.dtype, rows: part.rows }))
    : [];
}
