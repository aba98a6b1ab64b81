import type { ExecutorName } from '../../callbacks/gpt-manager-options.js';
import type { EnginePrecision } from '../../engine/directory/engine-directory.js';
import { isRoundedAgain } from '../../engine/directory/stored-precision.js';
import type { TensorType } from '../../models/checkpoints/checkpoint.js';

/** What the speed of a model depends on here. */
export interface SpeedFacts {
  /** Sentence on why the executor is not the fastest one; null: it is. */
  fallback: string | null;
  executor: ExecutorName;
  instructionSet: string;
  /** Storage types of the layers' matrices; none for an engine directory. */
  layerTypes: readonly TensorType[];
  /** Number of quantised matrices of safetensors that run in bf16. */
  widened: number;
  weights: EnginePrecision;
  weightBytes: number;
  /** Tokens that the KV cache has room for now; null: there is none. */
  cacheTokens: number | null;
  /** Why encoding may take long for some texts; null: it does not. */
  unproven: string | null;
}

const FLOATS: ReadonlySet<string> = new Set(['F32', 'F16', 'BF16']);
/** Tokens of a cache with which one short chat has room. */
const FEW_TOKENS = 512;

/** Sentences on what will be slow on this machine, and why. */
export function slowParts(facts: SpeedFacts): string[] {
  const { fallback, executor, instructionSet, cacheTokens, unproven } = facts;
  return [
    ...(fallback === null ? [] : [fallback]),
    ...(executor === 'native' && instructionSet === 'scalar' ? [SCALAR] : []),
    ...ofTypes(facts),
    ...(facts.widened === 0 ? [] : [widenedText(facts.widened)]),
    ...(cacheTokens !== null && cacheTokens < FEW_TOKENS ? [roomText(facts)] : []),
    ...(unproven === null
      ? []
      : [`Some texts may take long to encode, and each has a limit of time: ${asClause(unproven)}.`]),
  ];
}

const widenedText = (count: number) =>
  `${count === 1 ? 'A quantised matrix runs' : `${count} quantised matrices run`} in bf16, since no smaller form has the same numbers: a token reads more bytes than the file has.`;

const SCALAR =
  'The kernels compute one number at a time: the processor has no AVX2 and no NEON, or SKEIN_ISA says scalar.';

/** Matrices that run in a larger form than they are stored in. */
function ofTypes({ layerTypes, weights }: SpeedFacts): string[] {
  const types = [...new Set(layerTypes)];
  const small = types.filter((type) => !FLOATS.has(type));
  if (weights === 'bf16' && small.length > 0) {
    const large = types.filter((type) => FLOATS.has(type));
    return [
      `Matrices of ${small.join(', ')} run in bf16, since others are stored in ${large.join(', ')}: a token reads more bytes than the file has.`,
    ];
  }
  const rounded = types.filter(isRoundedAgain);
  if (rounded.length === 0) return [];
  return [
    `No kernel reads ${rounded.join(', ')}: these matrices are rounded to int8, and a token reads more bytes than the file has.`,
  ];
}

function roomText({ cacheTokens, weightBytes }: SpeedFacts): string {
  return `The free memory leaves room for ${cacheTokens} tokens besides ${(weightBytes / 1e9).toFixed(1)} GB of weights: requests wait for each other, or the model does not start.`;
}

const asClause = (reason: string) => reason.replace(/\.$/, '');
