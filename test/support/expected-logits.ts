import type { TinyNetwork } from '../../tools/support/tiny-network.js';
import { type NaiveOptions, naiveLogits } from './naive-network.js';

type Options = Pick<NaiveOptions, 'kvDtype' | 'roundsInputs' | 'roundsAttention' | 'window'>;

const computed = new WeakMap<TinyNetwork, Map<string, Float64Array[]>>();

/** The naive logits of a sequence: computed once for all instruction sets that are compared with them. */
export function expectedLogits(
  network: TinyNetwork,
  tokens: readonly number[],
  options: Options,
): readonly Float64Array[] {
  const known = computed.get(network) ?? new Map<string, Float64Array[]>();
  computed.set(network, known);
  const { kvDtype, roundsInputs = false, roundsAttention = false, window } = options;
  const key = JSON.stringify([tokens, kvDtype, roundsInputs, roundsAttention, window]);
  const { plan, weights, inverseFrequencies } = network;
  const logits =
    known.get(key) ?? naiveLogits(plan, weights, tokens, { ...options, inverseFrequencies, ropeScale: 1 });
  known.set(key, logits);
  return logits;
}
