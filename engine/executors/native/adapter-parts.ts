import type { AdapterWeights } from '../../../models/adapters/adapter-weights.js';
import { MODULE_IDS, type ModuleId, moduleName } from '../../../models/adapters/module-ids.js';
import { headsOf } from '../../../network/cache-layers.js';
import type { NetworkPlan, PlanWeight } from '../../../network/plan.js';

/** The change of some rows of one product's weight: see AdapterPart of executor/adapters.h. */
export interface AdapterPart {
  /** Index of the product among the plan's ops. */
  op: number;
  /** First row of the weight, which may stack several matrices. */
  firstRow: number;
  rows: number;
  rank: number;
  /** [rank x the weight's columns] */
  a: Float32Array;
  /** [rows x rank], the scaling in it */
  b: Float32Array;
}

/** Weights of a layer that modules are rows of, by what follows the layer's number in their sources' names. */
const ROLES: readonly (readonly [RegExp, Role])[] = [
  [/^(self_attn\.(q|k|v|qkv)_proj|self_attn\.q_proj\.\d+\.query|attn\.c_attn)\.weight$/, 'qkv'],
  [/^self_attn\.q_proj\.\d+\.gate\.weight$/, 'queryGate'],
  [/^(self_attn\.o_proj|attn\.c_proj)\.weight$/, 'dense'],
  [/^(mlp\.(gate|up|gate_up)_proj|mlp\.c_fc)\.weight$/, 'gateUp'],
  [/^mlp\.(down_proj|c_proj)\.weight$/, 'down'],
];
type Role = 'qkv' | 'queryGate' | 'dense' | 'gateUp' | 'down';

/** The weight that a module is rows of, and which of the parts of its stack: 'all' or the part's place. */
const PLACES: Readonly<Partial<Record<ModuleId, readonly [Role, number | 'all']>>> = {
  [MODULE_IDS.attn_qkv]: ['qkv', 'all'],
  [MODULE_IDS.attn_q]: ['qkv', 0],
  [MODULE_IDS.attn_k]: ['qkv', 1],
  [MODULE_IDS.attn_v]: ['qkv', 2],
  [MODULE_IDS.attn_dense]: ['dense', 'all'],
  [MODULE_IDS.mlp_gate_up]: ['gateUp', 'all'],
  [MODULE_IDS.mlp_h_to_4h]: ['gateUp', 0],
  [MODULE_IDS.mlp_gate]: ['gateUp', 1],
  [MODULE_IDS.mlp_4h_to_h]: ['down', 'all'],
};

interface Product {
  op: number;
  /** Rows of each part of its stack. */
  parts: readonly number[];
}

/**
 * Products of a plan by layer and role, so that an adapter's modules find theirs. A checkpoint may hold the parts of a stack or the whole
 * of it; a plan always has the whole:
 *
 *   qkv     | q (numHeads * headDim) | k | v (numKvHeads * headDim each) |
 *   gateUp  | gate | up |     or one part where the MLP has no gate
 *
 * Queries whose heads have gates are two products; a module of them has its rows head by head: | query | gate | query | gate ...
 */
export class AdapterProducts {
  readonly #byPlace = new Map<string, Product>();
  /** Rows of a head's query. */
  readonly #headDim: number;

  constructor(plan: NetworkPlan) {
    this.#headDim = plan.caches[0]?.keyDim ?? 0;
    const weights = new Map(plan.weights.map((weight) => [weight.name, weight]));
    for (const [index, op] of plan.ops.entries()) {
      if (op.op !== 'linear' && op.op !== 'gatedLinear') continue;
      const weight = weights.get(op.weight)!;
      const place = placeOf(weight);
      if (place === null) continue;
      const { layer, role } = place;
      const parts =
        role === 'qkv' ? qkvRows(plan, layer) : partsOf(weight.rows, op.op === 'gatedLinear' ? 2 : 1);
      this.#byPlace.set(`${layer} ${role}`, { op: index, parts });
    }
  }

  /** @throws an Error where the plan has no product of a module, which a checked adapter of its model never meets */
  partsOf({ moduleLayers }: AdapterWeights): AdapterPart[] {
    return moduleLayers.flatMap(({ layer, module, rank, a, b }) => {
      const place = PLACES[module];
      const product = place && this.#byPlace.get(`${layer} ${place[0]}`);
      const part = place?.[1];
      if (product === undefined || part === undefined || (part !== 'all' && part >= product.parts.length)) {
        throw new Error(
          `This network has no ${moduleName(module)} in layer ${layer} that an adapter could change.`,
        );
      }
      const gate = this.#byPlace.get(`${layer} queryGate`);
      if (module === MODULE_IDS.attn_q && gate !== undefined) {
        const rows = product.parts[0]!;
        const [ofQueries, ofGates] = [0, 1].map((which) => everySecond(b, this.#headDim * rank, which));
        return [
          { op: product.op, firstRow: 0, rows, rank, a, b: ofQueries! },
          { op: gate.op, firstRow: 0, rows, rank, a, b: ofGates! },
        ];
      }
      const firstRow = part === 'all' ? 0 : sum(product.parts.slice(0, part));
      const rows = part === 'all' ? sum(product.parts) : product.parts[part]!;
      return [{ op: product.op, firstRow, rows, rank, a, b }];
    });
  }
}

/** Every second piece of `length` numbers, from the first one on (0) or from the second (1). */
function everySecond(values: Float32Array, length: number, from: number): Float32Array {
  const pieces = new Float32Array(values.length / 2);
  for (let at = 0; at < pieces.length; at += length) {
    const begin = 2 * at + from * length;
    pieces.set(values.subarray(begin, begin + length), at);
  }
  return pieces;
}

function placeOf({ sources }: PlanWeight): { layer: number; role: Role } | null {
  const [, layer, rest = ''] = /(?:^|\.)(?:layers|h)\.(\d+)\.(.+)$/.exec(sources[0]?.name ?? '') ?? [];
  const role = ROLES.find(([pattern]) => pattern.test(rest))?.[1];
  return layer === undefined || role === undefined ? null : { layer: Number(layer), role };
}

function qkvRows({ attention, caches }: NetworkPlan, layer: number): number[] {
  const { kvHeads, keyDim, valueDim } = caches[layer] ?? caches[0]!;
  return [headsOf(attention, layer) * keyDim, kvHeads * keyDim, kvHeads * valueDim];
}

function partsOf(rows: number, count: number): number[] {
  return Array.from({ length: count }, () => rows / count);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
