import { resolve } from 'node:path';
import { option, says } from '../../base/named-text.js';
import { planNetwork } from '../../models/architectures/index.js';
import { type Checkpoint, CheckpointError, type TensorType } from '../../models/checkpoints/checkpoint.js';
import { findModelFiles } from '../../models/checkpoints/model-files.js';
import { openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';
import type { NetworkPlan, PlanWeight } from '../../network/plan.js';
import type { ConvertJob } from '../directory/convert-job.js';
import { ENGINE_FORMAT_VERSION, type EngineTensor } from '../directory/engine-directory.js';
import { sourceFileOf } from '../directory/source-tensors.js';
import { storedParts, type WeightPart } from '../directory/stored-precision.js';
import { SourceRows } from '../executors/portable/convert/source-rows.js';
import { describedEngine, tokenizerTexts } from './builder.js';
import { convertJobs } from './convert-jobs.js';
import { type Engine, EngineError, layOutWeights } from './engine.js';
import { piecesOf } from './source-placement.js';
import { routerWeights } from './weight-precision.js';

const PANELS = option('panels');

/**
 * Types whose rows the native executor multiplies as a file has them: kStoredFormats of its kernels/kernels.h, in the same order. Q2_K is none
 * of them: conversion rounds it to int8, and products of its rows would have other bits.
 */
export const ROW_TYPES: ReadonlySet<TensorType> = new Set([
  'F32',
  'F16',
  'BF16',
  'Q4_0',
  'Q4_1',
  'Q5_0',
  'Q5_1',
  'Q8_0',
  'Q3_K',
  'Q4_K',
  'Q5_K',
  'Q6_K',
  'IQ4_NL',
  'IQ4_XS',
  'MXFP4',
]);

/**
 * Opens a GGUF as an engine whose matrices are computed with where the file has them. Nothing is written: what an engine directory would
 * have besides them, norms and biases, is converted into memory. The numbers are those of an engine with the
 * precision 'stored'.
 *
 * @param path a .gguf file, the first of its parts, or a folder with one GGUF
 * @throws CheckpointError if the model is at fault, EngineError if it cannot be computed with as it lies
 */
export function openStoredEngine(path: string): Engine {
  return storedEngineOf(openCheckpoint(path));
}

/** Texts of the files that an engine directory would have, by the names of these, for those who serve the model elsewhere. */
export function storedEngineTexts(path: string): Record<string, string> {
  const checkpoint = openCheckpoint(path);
  const { manifest } = storedEngineOf(checkpoint);
  return { 'engine.json': JSON.stringify(manifest), ...tokenizerTexts(checkpoint.tokenizer) };
}

function storedEngineOf(checkpoint: Checkpoint): Engine {
  const { path } = checkpoint;
  const files = findModelFiles(path).weights.map((file) => resolve(file));
  const file = files[0]!;
  if (checkpoint.format !== 'gguf')
    throw new EngineError(says`${path}: only a GGUF is computed with as it lies; let ${PANELS} be true.`);
  if (checkpoint.config.encoder !== undefined)
    throw new EngineError(says`${path}: encoders are not computed with as they lie; let ${PANELS} be true.`);
  const plan = planNetwork(checkpoint.config);
  const precisions = { precision: 'stored', outputPrecision: 'stored' } as const;
  const { tensors, byteLength, elsewhere } = layOutWeights(
    plan,
    precisions.precision,
    precisions.outputPrecision,
    (weight) => partsByType(checkpoint, weight),
    staysStored(checkpoint, plan),
  );
  const staying = new Map(elsewhere.map((tensor): [EngineTensor, ConvertJob[]] => [tensor, []]));
  const held = new Uint8Array(byteLength);
  for (const { tensor, job } of convertJobs(checkpoint, plan, tensors)) {
    const jobs = staying.get(tensor);
    if (jobs === undefined) convertInto(held, job);
    else jobs.push(job);
  }
  const manifest = {
    ...describedEngine(checkpoint),
    ...precisions,
    formatVersion: ENGINE_FORMAT_VERSION,
    weightsByteLength: byteLength,
    sourceFile: sourceFileOf(files),
    tensors: tensors.map((tensor) => {
      const jobs = staying.get(tensor);
      return jobs === undefined ? tensor : { ...tensor, pieces: piecesOf(jobs, files) };
    }),
  };
  return { directory: file, manifest, plan, weightsFile: file, held };
}

/** Parts of a matrix, each of sources of one type: a product reads rows of one type at a time. */
function partsByType({ tensors }: Checkpoint, weight: PlanWeight): WeightPart[] {
  const typeOf = (name: string) => tensors.get(name)!.type;
  let before: TensorType | null = null;
  const parts: WeightPart[] = [];
  for (const source of weight.sources) {
    const type = typeOf(source.name);
    const [own] = storedParts({ tensors }, { ...weight, sources: [source] });
    if (type === before) parts.at(-1)!.rows += source.rows;
    else parts.push(own!);
    before = type;
  }
  return parts;
}

/**
 * True for a matrix whose rows stay in the file. Routers are f32 whatever the file has: a small matrix of another type is held in memory.
 *
 * @throws EngineError that names a tensor whose rows nothing multiplies
 */
function staysStored(
  { path, tensors }: Checkpoint,
  plan: NetworkPlan,
): (weight: PlanWeight, part: WeightPart) => boolean {
  const routers = routerWeights(plan);
  return ({ name, kind, sources }) => {
    if (kind !== 'matrix') return false;
    if (routers.has(name)) return sources.every((source) => tensors.get(source.name)!.type === 'F32');
    for (const source of sources) {
      const { type, transposed = false, addend = 0 } = tensors.get(source.name)!;
      if (ROW_TYPES.has(type) && !transposed && addend === 0) continue;
      throw new EngineError(
        says`${path}: tensor ${source.name} is of type ${type}, whose rows no product reads as they lie (${[...ROW_TYPES].join(', ')} are); let ${PANELS} be true, so that the model is converted once.`,
      );
    }
    return true;
  };
}

function convertInto(held: Uint8Array, job: ConvertJob): void {
  let rows: SourceRows;
  try {
    rows = new SourceRows([job]);
  } catch (error) {
    throw new CheckpointError((error as Error).message, { cause: error });
  }
  try {
    held.set(rows.read(0, job.rows), job.targetOffset);
  } finally {
    rows.close();
  }
}
