import type { ModelConfig, ScanConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { isObject } from './file-reading.js';
import { MAX_TAPS } from './state-families.js';

/** Most heads and groups of a scan, and widest head or state, as executors take them. */
export const MAX_SCAN = { heads: 4096, groups: 64, dim: 1024 } as const;

/** Fields of a config.json that say how its scans are, each with what transformers takes where it is missing. */
export interface ScanFields {
  heads: readonly [field: string, usually: number];
  /** Without a number: the width of all heads, parted among them. */
  headDim: readonly [field: string, usually?: number];
  groups: readonly [field: string, usually: number];
  stateDim: readonly [field: string, usually: number];
  taps: string;
  convBias: string;
  inputBias: string;
  outputBias: string;
}

type OfScan = Required<Pick<ModelConfig, 'scan' | 'shortConv'>>;

/**
 * The scans of a model.
 * @param width of all heads together; undefined: that of the heads, whatever it is
 */
export function scanOf(
  config: ConfigFields,
  fields: ScanFields,
  width: number | undefined,
  norm: ScanConfig['norm'],
): OfScan {
  const heads = config.integer(fields.heads[0], 1, MAX_SCAN.heads, fields.heads[1]);
  const [dimField, usualDim = (width ?? 0) / heads] = fields.headDim;
  const isAuto = config.raw(dimField) === undefined || config.raw(dimField) === 'auto';
  const headDim = isAuto ? usualDim : config.integer(dimField, 1, MAX_SCAN.dim);
  const all = heads * headDim;
  const isWhole = Number.isInteger(headDim) && headDim >= 1 && headDim <= MAX_SCAN.dim;
  if (!isWhole || all > LIMITS.width || (width !== undefined && all !== width)) {
    const expected = width === undefined ? `at most ${LIMITS.width}` : String(width);
    throw config.error(fields.heads[0], `a number of heads that are ${expected} wide together`);
  }
  const groups = config.integer(fields.groups[0], 1, MAX_SCAN.groups, fields.groups[1]);
  if (heads % groups !== 0) throw config.error(fields.groups[0], `a divisor of the ${heads} heads`);
  return {
    scan: {
      heads,
      headDim,
      groups,
      stateDim: config.integer(fields.stateDim[0], 1, MAX_SCAN.dim, fields.stateDim[1]),
      biased: {
        input: config.boolean(fields.inputBias, false),
        output: config.boolean(fields.outputBias, false),
      },
      norm,
      ...stepLimits(config),
    },
    shortConv: {
      taps: config.integer(fields.taps, 2, MAX_TAPS, 4),
      biased: config.boolean(fields.convBias, true),
    },
  };
}

/** time_step_limit: transformers 5 writes a number that JSON has no word for as { "__float__": "Infinity" }. */
function stepLimits(config: ConfigFields): Pick<ScanConfig, 'leastStep' | 'mostStep'> {
  const given = config.raw('time_step_limit') ?? [0, Number.POSITIVE_INFINITY];
  const numbers = (Array.isArray(given) ? given : []).map((one: unknown) =>
    isObject(one) && one.__float__ === 'Infinity' ? Number.POSITIVE_INFINITY : one,
  );
  const [least, most] = numbers as number[];
  const areNumbers = numbers.length === 2 && numbers.every((one) => typeof one === 'number');
  if (!areNumbers || !(least! >= 0 && least! < Number.POSITIVE_INFINITY && most! >= least!))
    throw config.error('time_step_limit', 'two numbers of at least 0, the greater one last');
  return { leastStep: least!, mostStep: most === Number.POSITIVE_INFINITY ? null : most! };
}

/** Refuses another activation than SiLU, which stands before a scan. */
export function requireSilu(config: ConfigFields, field: string): void {
  const named = config.raw(field) ?? 'silu';
  if (named !== 'silu' && named !== 'swish') throw config.error(field, 'silu');
}
