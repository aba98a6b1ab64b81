import type { ConfigFields } from './config-fields.js';
import type { GgufMetadata } from './gguf-metadata.js';

/** Source of a recommendation. */
export type RecommendationSource = 'GGUF' | 'generation_config.json';

/** A setting that the makers of a model recommend, unchecked, as their file has it. */
export interface Recommendation {
  value: number | string;
  from: RecommendationSource;
  /** Name in that file. */
  key: string;
}

/** Recommended settings of sampling by the names of the HTTP API. */
export type RecommendedSampling = Partial<Record<string, Recommendation>>;

/**
 * Name of a setting in generation_config.json, and after `general.sampling.` in a GGUF. Absent: that file has
 * none.
 */
export interface RecommendedAs {
  huggingFace?: string;
  gguf?: string;
}

/** Settings by the names of the HTTP API, with those in the files. */
export type RecommendedNames = Readonly<Record<string, RecommendedAs>>;

const GGUF_PREFIX = 'general.sampling.';
/** Most characters that are kept of a value that is no number. */
const MAX_SHOWN = 100;

/**
 * Reads what a model's files recommend of these settings. A GGUF is the file that was asked for: its values
 * win over those of generation_config.json next to it.
 */
export function recommendedSampling(
  names: RecommendedNames,
  generation: ConfigFields | null,
  gguf: GgufMetadata | null,
): RecommendedSampling {
  const found: RecommendedSampling = {};
  for (const [name, { huggingFace, gguf: ggufName }] of Object.entries(names)) {
    const own = ggufName === undefined ? undefined : gguf?.get(GGUF_PREFIX + ggufName);
    const other = huggingFace === undefined ? undefined : generation?.raw(huggingFace);
    if (own !== undefined) found[name] = { value: kept(own), from: 'GGUF', key: GGUF_PREFIX + ggufName };
    else if (other !== undefined) {
      found[name] = { value: kept(other), from: 'generation_config.json', key: huggingFace! };
    }
  }
  return found;
}

function kept(value: unknown): number | string {
  if (typeof value === 'number') return shortest(value);
  const text = typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.slice(0, MAX_SHOWN);
}

/** The shortest number with the same float32, where it is one: a GGUF has 0.95 as 0.949999988079071. */
function shortest(value: number): number {
  if (Math.fround(value) !== value || Number.isInteger(value)) return value;
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}
