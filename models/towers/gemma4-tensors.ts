import { CheckpointError } from '../checkpoints/checkpoint.js';
import { numberOf } from '../checkpoints/one-number.js';
import { refuseShape, refuseUnsupportedType } from '../checkpoints/raw-tensor.js';
import { rowSlices } from '../checkpoints/row-slices.js';
import type { NamedTensor } from '../checkpoints/tensor-layout.js';
import { type Clips, LINEAR_OF_GEMMA4, type TowerConfig } from './tower-config.js';

type Heads = Pick<TowerConfig, 'hiddenSize' | 'numHeads'>;

/**
 * Quarters of a head of queries and of keys in the order of the network. The files have the halves that turn by the column and by the row of
 * a patch one after the other, each with pairs (i, i + a quarter); the network turns pairs (i, i + a half), by rows first:
 *
 *   files     | column | column | row | row |        0 1 2 3
 *   network   | row | column | row | column |        2 0 3 1
 */
const QUARTERS = [2, 0, 3, 1] as const;

/** Parts that a matrix of queries or keys is put together from: see projection. */
export function headSources(
  source: string,
  { hiddenSize, numHeads }: Heads,
): [source: string, rows: number][] {
  const rows = hiddenSize / numHeads / 4;
  return Array.from({ length: numHeads }).flatMap((_, head) =>
    QUARTERS.map((quarter): [string, number] => [`${source}.${head}.${quarter}`, rows]),
  );
}

/** The same of the weight of a norm of each head. */
export function normSources(
  source: string,
  { hiddenSize, numHeads }: Heads,
): { name: string; columns: number }[] {
  const columns = hiddenSize / numHeads / 4;
  return QUARTERS.map((quarter) => ({ name: `${source}.${quarter}.weight`, columns }));
}

const TURNED = /^(tower\.encoder\.layers\.\d+\.self_attn\.[qk]_)(?:(proj)\.linear|(norm))\.weight$/;

/** Tensors of Gemma 4's tower under the network's names. */
export function gemma4TowerTensors(
  name: string,
  tensor: NamedTensor,
  { hiddenSize, numHeads }: Heads,
): [string, NamedTensor][] {
  const [, begin, projection, norm] = TURNED.exec(name) ?? [];
  const quarter = hiddenSize / numHeads / 4;
  const quarters = [0, 1, 2, 3];
  if (projection !== undefined) {
    refuseUnsupportedType(tensor);
    refuseShape(tensor, [hiddenSize, hiddenSize]);
    const heads = Array.from({ length: numHeads }, (_, head) => head);
    const parts = heads.flatMap((head) =>
      quarters.map((one) => [`${begin}proj.${head}.${one}.weight`, quarter] as const),
    );
    return rowSlices(tensor, parts, hiddenSize);
  }
  if (norm !== undefined) {
    refuseUnsupportedType(tensor);
    refuseShape(tensor, [4 * quarter]);
    const parts = quarters.map((one) => [`${begin}norm.${one}.weight`, quarter] as const);
    return rowSlices(tensor, parts, 1).map(([one, slice]) => [one, { ...slice, shape: [quarter] }]);
  }
  // The tables of columns and of rows, one after the other; and vectors that are added as rows of tables are.
  if (name.endsWith('.position_embedding_table'))
    return [
      [
        name,
        { ...tensor, shape: [(tensor.shape[0] ?? 0) * (tensor.shape[1] ?? 0), ...tensor.shape.slice(2)] },
      ],
    ];
  if (/^tower\.std_(?:bias|scale)$/.test(name)) return [[name, { ...tensor, shape: [1, ...tensor.shape] }]];
  return [[name, tensor]];
}

/** The clips of all linear layers, by layer; the numbers are tensors of their own, and infinite where a layer has none. */
export function readClips(
  tensors: ReadonlyMap<string, NamedTensor>,
  numLayers: number,
): Record<string, Clips>[] {
  const bound = (layer: number, source: string, end: string) => {
    const tensor = tensors.get(`tower.encoder.layers.${layer}.${source}.${end}`);
    const number = tensor === undefined ? Number.NaN : numberOf(tensor);
    if (!Number.isNaN(number)) return number;
    throw new CheckpointError(
      `The tower's layer ${layer} should have a number ${source}.${end}, since its configuration has use_clipped_linears.`,
    );
  };
  const between = (layer: number, source: string, what: string): Clips['input'] => {
    const [least, most] = [bound(layer, source, `${what}_min`), bound(layer, source, `${what}_max`)];
    return least === -Infinity && most === Infinity ? null : [within(least), within(most)];
  };
  return Array.from({ length: numLayers }, (_, layer) =>
    Object.fromEntries(
      LINEAR_OF_GEMMA4.map((source) => [
        source,
        { input: between(layer, source, 'input'), output: between(layer, source, 'output') },
      ]),
    ),
  );
}

/** Infinity as a number that plans can have. */
const within = (bound: number) => Math.max(-MOST, Math.min(bound, MOST));
const MOST = 3.4028234663852886e38;
