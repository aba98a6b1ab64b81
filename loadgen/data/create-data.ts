import { readTrace } from '../arrivals/trace.js';
import { InputError } from '../errors.js';
import type { FullBenchOptions } from '../options.js';
import type { Dataset } from '../samples.js';
import { conversations } from './conversations.js';
import { jsonlDataset } from './jsonl.js';
import { randomText } from './random-text.js';
import type { TokenScale } from './words.js';

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
            `The trace ${file} has no prompts and no lengths: give other data beside its times.`,
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
