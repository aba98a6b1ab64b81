import { readTrace } from '../arrivals/trace.js';
import { InputError } from '../errors.js';
import type { FullBenchOptions } from '../options.js';
import { Random } from '../random.js';
import type { Dataset, Turn } from '../samples.js';
import { jsonlDataset } from './jsonl.js';
import { drawLength, type LengthOptions } from './lengths.js';
import { randomText } from './random-text.js';
import { drawWords, type TokenScale, wordsFor } from './words.js';

export interface Data {
  /** Arrival times of a trace, in seconds; empty without one. */
  traceTimes: readonly number[];
  /** Dataset of a seed: runs of other seeds have other prompts, so that no cache of prompts knows them. */
  of(seed: number): Dataset;
}

/** True where the data has prompts of given lengths, so that the number of tokens of a word must be known. */
export function needsScale({ data, arrivals }: FullBenchOptions): boolean {
  return data.kind !== 'jsonl' && (data.kind !== 'trace' || arrivals.kind === 'trace');
}

/** Makes the data. @throws InputError for files that cannot be read. */
export function createData({ data, arrivals }: FullBenchOptions, scale: TokenScale): Data {
  const bySeed = new Map<number, Dataset>();
  const traceTimes = arrivals.kind === 'trace' ? readTrace(arrivals.file, 0, scale).times : [];
  const create = (seed: number): Dataset => {
    switch (data.kind) {
      case 'random': {
        const { prefix, ...rest } = data;
        return randomText({ ...rest, ...(prefix === undefined ? {} : { prefix }) }, scale, seed);
      }
      case 'conversations':
        return conversations(data, scale, seed);
      case 'jsonl':
        return jsonlDataset(data, seed);
      case 'trace': {
        const file = arrivals.kind === 'trace' ? arrivals.file : '';
        const { dataset } = readTrace(file, seed, scale);
        if (dataset === null) {
          throw new InputError(
            `The trace ${file} has no prompts and no lengths: give other data together with its times.`,
          );
        }
        return dataset;
      }
    }
  };
  return {
    traceTimes,
    of: (seed) => {
      const dataset = bySeed.get(seed) ?? create(seed);
      bySeed.set(seed, dataset);
      return dataset;
    },
  };
}

const SAMPLES = 4;
const SYSTEM = 5;

interface ConversationOptions {
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
