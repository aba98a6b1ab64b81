import { Random } from '../random.js';
import type { Dataset } from '../samples.js';
import { drawLength, type LengthOptions } from './lengths.js';
import { drawWords, type TokenScale, wordsFor } from './words.js';

/** Streams of the seed. */
const SAMPLES = 2;
const PREFIXES = 3;

export interface RandomTextOptions {
  inputTokens: LengthOptions;
  outputTokens: LengthOptions;
  /** Prompts that begin alike: so many first tokens, of so many different beginnings. */
  prefix?: { tokens: number; count: number };
  /** Distinct samples; Infinity: none comes twice. */
  samples: number;
}

/** Prompts of random words, each beginning differently (behind a shared prefix, where there is one). */
export function randomText(options: RandomTextOptions, scale: TokenScale, seed: number): Dataset {
  const { inputTokens, outputTokens, prefix, samples } = options;
  const prefixes = Array.from({ length: prefix?.count ?? 0 }, (_, i) => {
    // The template's tokens are counted with the whole prompt.
    const words = wordsFor(prefix!.tokens, { ...scale, fixed: 0 });
    return drawWords(words, new Random(seed, PREFIXES, i));
  });
  const prefixTokens = prefix?.tokens ?? 0;
  return {
    description: {
      kind: prefix === undefined ? 'random' : 'shared-prefix',
      inputTokens,
      outputTokens,
      ...(prefix === undefined ? {} : { prefix }),
      samples,
      tokensPerWord: scale.perWord,
      templateTokens: scale.fixed,
    },
    size: samples,
    sample: (index) => {
      const random = new Random(seed, SAMPLES, index);
      const own = drawLength(inputTokens, random);
      const maxTokens = drawLength(outputTokens, random);
      const text = drawWords(wordsFor(own, scale), random);
      const prompt = prefix === undefined ? text : `${prefixes[random.below(prefix.count)]} ${text}`;
      return { turns: [{ prompt, maxTokens, promptTokens: own + prefixTokens }] };
    },
  };
}
