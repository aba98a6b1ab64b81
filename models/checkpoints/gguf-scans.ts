import type { ModelConfig } from '../model-config.js';
import { LIMITS } from './config-fields.js';
import type { GgufKeys } from './gguf-keys.js';
import { withoutAttention } from './mamba2-config.js';
import type { RawTensor } from './raw-tensor.js';
import { MAX_SCAN } from './scan-config.js';
import { withoutRope } from './scan-families.js';
import { MAX_TAPS } from './state-families.js';

/** Architectures with scans of which a layer's number of key-value heads says whether it attends. */
const BY_KEY_VALUE_HEADS = ['granite4', 'nemotronh'];

/** Fields of models whose layers have scans, from a file's keys and the names of its tensors. */
export function ggufScanFields(
  keys: GgufKeys,
  architecture: string,
  { numLayers, headDim, experts }: Pick<ModelConfig, 'numLayers' | 'headDim' | 'experts'>,
  tensors: ReadonlyMap<string, RawTensor>,
): Partial<ModelConfig> {
  const isHybrid = BY_KEY_VALUE_HEADS.includes(architecture);
  if (!isHybrid && architecture !== 'mamba2' && architecture !== 'falconh1') return {};
  const fields = { ...scanOf(keys, architecture, tensors) };
  if (architecture === 'mamba2') return { ...fields, ...withoutAttention(numLayers) };
  if (architecture === 'falconh1')
    return { ...fields, attendingLayers: new Array<boolean>(numLayers).fill(true) };
  const attends = perLayer(keys, 'attention.head_count_kv', numLayers).map((count) => count > 0);
  if (architecture === 'granite4') return { ...fields, attendingLayers: attends };
  const widths = perLayer(keys, 'feed_forward_length', numLayers);
  const others = widths.map((width, layer) => width > 0 && !attends[layer]);
  return {
    ...fields,
    attendingLayers: attends,
    ...(experts === undefined ? { mlpLayers: others } : { experts: { ...experts, layers: others } }),
    ...withoutRope(numLayers, headDim),
  };
}

/** The one number of a list that has a number for each layer, 0 for those without; a number for all of them; undefined for others. */
export function numberOfSome(
  keys: GgufKeys,
  architecture: string,
  key: string,
  numLayers: number,
): number | undefined {
  if (!BY_KEY_VALUE_HEADS.includes(architecture) || keys.list(key) === undefined) return undefined;
  return perLayer(keys, key, numLayers).find((count) => count > 0) ?? 1;
}

/** A number for each layer, all of them the same one or 0. */
function perLayer(keys: GgufKeys, key: string, numLayers: number): number[] {
  const list = keys.list(key);
  if (list === undefined) return new Array<number>(numLayers).fill(keys.integer(key, 0, LIMITS.width));
  const counts = Array.from(list, Number);
  const [most = 1, ...others] = new Set(counts.filter((count) => count !== 0));
  const isRight = Number.isInteger(most) && most >= 1 && most <= LIMITS.width && others.length === 0;
  if (isRight && counts.length === numLayers) return counts;
  const expected = `${numLayers} times one number from 1 to ${LIMITS.width}, or 0`;
  throw keys.error(key, expected, `a list of ${counts.length}: ${counts.slice(0, 8).join(', ')}`);
}

/**
 * llama.cpp's converter has rates in place of their logarithms; it norms after the gate where there is a
 * norm, and limits no step.
 */
function scanOf(
  keys: GgufKeys,
  architecture: string,
  tensors: ReadonlyMap<string, RawTensor>,
): Required<Pick<ModelConfig, 'scan' | 'shortConv'>> {
  const heads = keys.integer('ssm.time_step_rank', 1, MAX_SCAN.heads);
  const groups = keys.integer('ssm.group_count', 1, MAX_SCAN.groups);
  if (heads % groups !== 0) throw keys.error('ssm.group_count', `a divisor of the ${heads} heads`, groups);
  const width = keys.integer('ssm.inner_size', heads, Math.min(heads * MAX_SCAN.dim, LIMITS.width));
  if (width % heads !== 0) throw keys.error('ssm.inner_size', `a multiple of the ${heads} heads`, width);
  const names = [...tensors.keys()];
  const has = (name: string) => names.some((one) => one.endsWith(`.${name}`));
  return {
    scan: {
      heads,
      headDim: width / heads,
      groups,
      stateDim: keys.integer('ssm.state_size', 1, MAX_SCAN.dim),
      biased: { input: has('ssm_in.bias'), output: has('ssm_out.bias') },
      norm: architecture !== 'falconh1' || has('ssm_norm.weight') ? 'behindGate' : 'none',
      leastStep: 0,
      mostStep: null,
      rates: true,
    },
    shortConv: {
      taps: keys.integer('ssm.conv_kernel', 2, MAX_TAPS),
      biased: has('ssm_conv1d.bias'),
    },
  };
}
