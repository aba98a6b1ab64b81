import { Random } from '../random.js';
import type { Dataset } from '../samples.js';
import { drawLength, type LengthOptions } from './lengths.js';
import { drawWords, type TokenScale, wordsFor } from './words.js';

/** Numbers of the random streams of samples and prefixes. */
const SAMPLES = 2;
const PREFIXES = 3;

export interface RandomTextOptions {
  inputTokens: LengthOptions;
  outputTokens: LengthOptions;
  /** Shared beginnings of prompts: their length in tokens, and the number of different ones. */
  prefix?: { tokens: number; count: number };
  /** Number of distinct samples; Infinity: none comes twice. */
  samples: number;
}

/**
 * Dataset of prompts of random words, which all begin differently (after a shared prefix, if there is one).
 */
export function randomText(options: RandomTextOptions, scale: TokenScale, seed: number): Dataset {
  const { inputTokens, outputTokens, prefix, samples } = options;
  const prefixes = Array.from({ length: prefix?.count ?? 0 }, (_, i) => {
    // The template's tokens count with the whole prompt.
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
