import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { readLabels } from '../../../models/repository/read-labels.js';
import type { InferModel } from '../infer-model.js';
import type { SharedSpan } from '../shared-memory/shared-regions.js';
import { classified } from './classification.js';

/** How a client wants an output. */
export interface OutputWish {
  name: string;
  /** Classes to name in place of the tensor; 0: the tensor itself. */
  classification: number;
  /** Where in shared memory it goes, instead of into the answer; null: nowhere. */
  region: SharedSpan | null;
}

/** Outputs with what is wished of them, in the order in which they were asked for; null: none was asked for, which means all. */
export function chosenOutputs<Wish extends OutputWish>(
  outputs: readonly InferTensor[],
  wishes: readonly Wish[] | null,
): [InferTensor, Wish | undefined][] {
  if (wishes === null) return outputs.map((output) => [output, undefined]);
  return wishes.flatMap((wish) => {
    const output = outputs.find(({ name }) => name === wish.name);
    return output === undefined ? [] : [[output, wish]];
  });
}

/**
 * The output as it is wished: its classes, or itself; without bytes where it goes to shared memory, which it has when this resolves.
 * @throws InferError
 */
export async function wishedOutput(
  model: InferModel,
  output: InferTensor,
  wish: OutputWish | undefined,
  signal?: AbortSignal,
): Promise<InferTensor> {
  if (wish === undefined) return output;
  if (wish.region !== null) {
    await wish.region.write(output.name, output.data);
    return { ...output, data: NO_BYTES };
  }
  if (wish.classification === 0) return output;
  const isBatched = model.config.max_batch_size > 0;
  return classified(output, wish.classification, isBatched, labelsOf(model, output.name), signal);
}

const NO_BYTES = new Uint8Array();

/** Labels by the file's name, of each version of a model: a version's files stay what they are. */
const labelsOfModels = new WeakMap<InferModel, Map<string, readonly string[]>>();

function labelsOf(model: InferModel, output: string): readonly string[] {
  if (model.labels !== undefined) return model.labels;
  const filename = model.config.output.find(({ name }) => name === output)?.label_filename ?? '';
  if (filename === '' || model.modelDirectory === null) return [];
  const known = labelsOfModels.get(model) ?? new Map<string, readonly string[]>();
  labelsOfModels.set(model, known);
  const labels = known.get(filename) ?? readLabels(model.modelDirectory, filename);
  known.set(filename, labels);
  return labels;
}
