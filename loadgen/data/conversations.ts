import { Random } from '../random.js';
import type { Dataset, Turn } from '../samples.js';
import { drawLength, type LengthOptions } from './lengths.js';
import { drawWords, type TokenScale, wordsFor } from './words.js';

const SAMPLES = 4;
const SYSTEM = 5;

export interface ConversationOptions {
  turns: number;
  /** Length of each turn's own text; the server's count grows with the conversation. */
  inputTokens: LengthOptions;
  outputTokens: LengthOptions;
  /** Seconds between an answer and the next turn. */
  thinkSeconds: number;
  /** Length of a system message shared by all conversations; 0: none. */
  systemTokens: number;
  samples: number;
}

/** Dataset of conversations of random words, whose turns follow the server's own answers. */
export function conversations(options: ConversationOptions, scale: TokenScale, seed: number): Dataset {
  const perWord = { ...scale, fixed: 0 };
  const system = drawWords(wordsFor(options.systemTokens, perWord), new Random(seed, SYSTEM));
  return {
    description: { kind: 'conversations', ...options, tokensPerWord: scale.perWord },
    size: options.samples,
    sample: (index) => {
      const random = new Random(seed, SAMPLES, index);
      const turns = Array.from({ length: options.turns }, (_, turn): Turn => {
        const tokens = drawLength(options.inputTokens, random);
        const isFirst = turn === 0;
        return {
          prompt: drawWords(wordsFor(tokens, isFirst ? scale : perWord), random),
          maxTokens: drawLength(options.outputTokens, random),
          ...(isFirst && options.systemTokens === 0 ? { promptTokens: tokens } : {}),
          ...(isFirst && options.systemTokens > 0 ? { history: [{ role: 'system', content: system }] } : {}),
          ...(isFirst ? {} : { thinkSeconds: options.thinkSeconds }),
        };
      });
      return { turns };
    },
  };
}
