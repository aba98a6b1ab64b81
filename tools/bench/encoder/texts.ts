import { Random } from '../../soak/random.js';

/** Texts of one kind, by the number of their words. */
export interface Workload {
  name: string;
  texts: string[];
}

const WORDS =
  'the engine serves many users of one model from a single machine while requests join and leave between two steps without padding so that short texts never wait for long ones and every answer stays what it would be alone'.split(
    ' ',
  );

/** The same texts for every side and every run. */
export function workloads(scale: number): Workload[] {
  const random = new Random(11);
  const make = (count: number, least: number, most: number) =>
    Array.from({ length: Math.max(8, Math.round(count * scale)) }, () =>
      Array.from({ length: random.integer(least, most) }, () => random.pick(WORDS)).join(' '),
    );
  return [
    { name: 'short: 6 to 14 words', texts: make(1024, 6, 14) },
    { name: 'ragged: 4 to 180 words', texts: make(256, 4, 180) },
    { name: 'long: 180 words', texts: make(128, 180, 180) },
  ];
}
