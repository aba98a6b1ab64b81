import type { ModelConfig } from '../model-config.js';
import { LIMITS } from './config-fields.js';
import type { GgufKeys } from './gguf-keys.js';
import { MAX_DELTA_DIM, MAX_TAPS } from './state-families.js';
import { isLfm2 } from './state-tensors.js';

/** Interval of layers that attend where a file does not say, as in llama.cpp. */
const USUAL_INTERVAL = 4;

/** Fields of models whose layers keep states, from a file's keys. */
export function ggufStateFields(
  keys: GgufKeys,
  architecture: string,
  numLayers: number,
): Partial<ModelConfig> {
  if (isLfm2({ architecture })) {
    if (keys.boolean('attention.causal') === false)
      throw keys.error('attention.causal', 'true: convolutions of both sides are not supported', false);
    const heads = keyValueHeads(keys, numLayers);
    return {
      attendingLayers: heads?.map((count) => count > 0) ?? Array.from({ length: numLayers }, () => true),
      shortConv: { taps: keys.integer('shortconv.l_cache', 2, MAX_TAPS), biased: false },
    };
  }
  if (!isDelta(architecture)) return {};
  return {
    attendingLayers: attending(keys, numLayers),
    shortConv: { taps: keys.integer('ssm.conv_kernel', 2, MAX_TAPS), biased: false },
    delta: deltaHeads(keys, architecture),
  };
}

/** The one number of key-value heads of those layers that attend, where a file has a list of them; undefined for any other. */
export function keyValueHeadsOfSome(
  keys: GgufKeys,
  architecture: string,
  numLayers: number,
): number | undefined {
  const counts = isLfm2({ architecture }) ? keyValueHeads(keys, numLayers) : undefined;
  return counts?.find((count) => count > 0);
}

/** Key-value heads of each layer, 0 for one that does not attend. */
function keyValueHeads(keys: GgufKeys, numLayers: number): number[] | undefined {
  const list = keys.list('attention.head_count_kv');
  if (list === undefined) return undefined;
  const counts = Array.from(list, Number);
  const [most = 0, ...others] = new Set(counts.filter((count) => count !== 0));
  const isRight = Number.isInteger(most) && most >= 1 && most <= LIMITS.heads && others.length === 0;
  if (isRight && counts.length === numLayers) return counts;
  const expected = `${numLayers} times one number from 1 to ${LIMITS.heads}, or 0 for a layer that does not attend`;
  throw keys.error(
    'attention.head_count_kv',
    expected,
    `a list of ${counts.length}: ${counts.slice(0, 8).join(', ')}`,
  );
}

const isDelta = (architecture: string) => /^qwen3(5|5moe|next)$/.test(architecture);

/** Whether each layer of Qwen3.5 attends: those that are not recurrent, or the last of each interval. */
function attending(keys: GgufKeys, numLayers: number): boolean[] {
  const recurrent = keys.list('attention.recurrent_layers');
  const interval = keys.integer('full_attention_interval', 1, LIMITS.layers, USUAL_INTERVAL);
  if (recurrent !== undefined && recurrent.length < numLayers)
    throw keys.error('attention.recurrent_layers', `a list of ${numLayers}`, `one of ${recurrent.length}`);
  const layers = Array.from({ length: numLayers }, (_, layer) =>
    recurrent === undefined ? (layer + 1) % interval === 0 : !recurrent[layer],
  );
  if (layers.includes(true)) return layers;
  throw recurrent === undefined
    ? keys.error('full_attention_interval', `at most the ${numLayers} layers: one has to attend`, interval)
    : keys.error('attention.recurrent_layers', 'at least one layer that attends', 'none');
}

/**
 * Heads of the delta rule. llama.cpp's converter puts the heads of values into another order where a key head of Qwen3.5 has several, and
 * has the rates of decay in place of their logarithms.
 */
function deltaHeads(keys: GgufKeys, architecture: string): NonNullable<ModelConfig['delta']> {
  const keyHeads = keys.integer('ssm.group_count', 1, LIMITS.heads);
  const valueHeads = keys.integer('ssm.time_step_rank', 1, LIMITS.heads);
  if (valueHeads % keyHeads !== 0)
    throw keys.error('ssm.time_step_rank', `a multiple of the ${keyHeads} heads of keys`, valueHeads);
  const values = keys.integer('ssm.inner_size', valueHeads, valueHeads * MAX_DELTA_DIM);
  if (values % valueHeads !== 0)
    throw keys.error('ssm.inner_size', `a multiple of the ${valueHeads} heads of values`, values);
  return {
    keyHeads,
    valueHeads,
    keyDim: keys.integer('ssm.state_size', 1, MAX_DELTA_DIM),
    valueDim: values / valueHeads,
    ...(valueHeads !== keyHeads && architecture !== 'qwen3next' && { tiled: true }),
    rates: true,
  };
}
