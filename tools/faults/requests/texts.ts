import { Random } from '../../support/random.js';

/** Words that the demo model knows; other models take them as well. */
const WORDS = (
  'once there was a little cat who lived by the river and a goose that flew over the lake in the morning when the ' +
  'children came to play with their boat under the old tree near the village'
).split(' ');

/** A text of `count` words. */
export const words = (random: Random, count: number): string =>
  Array.from({ length: count }, () => WORDS[random.below(WORDS.length)]).join(' ');

/** One of three long texts with which several prompts begin, so that there is something to find in caches. */
export const sharedBeginning = (random: Random): string => words(new Random(random.below(3)), 90);
