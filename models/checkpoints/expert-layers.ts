import { type ConfigFields, LIMITS } from './config-fields.js';

/** How a config.json says which layers have one MLP in place of experts: the first ones, by a field, or by steps and a list. */
export type DenseLayers = { first: string; usually: number } | 'bySteps';

/** Whether each layer has experts; undefined: all have. At least one layer has to. */
export function layersWithExperts(
  config: ConfigFields,
  numLayers: number,
  dense: DenseLayers | undefined,
): boolean[] | undefined {
  if (dense === undefined) return undefined;
  const layers = dense === 'bySteps' ? bySteps(config, numLayers) : behindFirst(config, numLayers, dense);
  if (layers.every((has) => has)) return undefined;
  if (config.raw('intermediate_size') === undefined)
    throw config.error('intermediate_size', 'the width of the MLP of layers without experts');
  return layers;
}

/** The layers after the first `dense` ones. */
export const behindDense = (numLayers: number, dense: number): boolean[] =>
  Array.from({ length: numLayers }, (_, layer) => layer >= dense);

/** The second of each `every` layers. */
export const oneOfEach = (numLayers: number, every: number): boolean[] =>
  Array.from({ length: numLayers }, (_, layer) => layer % every === 1);

function behindFirst(
  config: ConfigFields,
  numLayers: number,
  { first, usually }: Exclude<DenseLayers, 'bySteps'>,
): boolean[] {
  return behindDense(numLayers, config.integer(first, 0, numLayers - 1, Math.min(usually, numLayers - 1)));
}

/** Every decoder_sparse_step-th layer that mlp_only_layers does not name. */
function bySteps(config: ConfigFields, numLayers: number): boolean[] {
  const step = config.integer('decoder_sparse_step', 1, LIMITS.layers, 1);
  const dense = config.raw('mlp_only_layers') ?? [];
  const isLayer = (one: unknown) =>
    Number.isInteger(one) && (one as number) >= 0 && (one as number) < numLayers;
  if (!Array.isArray(dense) || !dense.every(isLayer))
    throw config.error('mlp_only_layers', `a list of layers from 0 to ${numLayers - 1}`);
  const layers = Array.from(
    { length: numLayers },
    (_, layer) => (layer + 1) % step === 0 && !dense.includes(layer),
  );
  if (layers.includes(true)) return layers;
  throw dense.length > 0
    ? config.error('mlp_only_layers', 'a list that leaves at least one layer with experts')
    : config.error('decoder_sparse_step', `at most the ${numLayers} layers: one has to have experts`);
}
