/** Length of a burst's answers and prompts. */
export type BurstLength = 'short' | 'mixed' | 'long';

/** One request of a burst: its prompts, and what ends their answers. */
export interface BurstGroup {
  prompts: string[];
  maxTokens: number;
  /** Words that end an answer before its limit, so that answers differ in length, as real ones do. */
  stop: string[];
}

const NAMES = [
  'Ada',
  'Ben',
  'Cleo',
  'Dov',
  'Eva',
  'Finn',
  'Gus',
  'Hana',
  'Ivo',
  'Juno',
  'Kai',
  'Lena',
  'Milo',
  'Nora',
];
const ANIMALS = ['goose', 'cat', 'fox', 'bear', 'mouse', 'owl', 'frog', 'horse', 'rabbit', 'duck', 'dog'];
const PLACES = ['by the lake', 'in a small town', 'on a hill', 'in the old forest', 'near the sea'];

const PREAMBLE =
  'This is a book of stories about animals who travel together. In the first one the geese learned that a flock flies ' +
  'farther than a goose alone: the tired go to the back, the rested go to the front, and none has to ' +
  'wait for the others. In the second one it rained for seven days, and the mouse built a boat out of a walnut shell. In ' +
  'the third one the bear lost his hat, and everybody looked for it under every tree until the wind brought it back. ';

/** Groups of each length: the rarer the stop words, the longer the answers. */
const KINDS: Record<BurstLength, readonly Omit<BurstGroup, 'prompts'>[]> = {
  short: [{ maxTokens: 96, stop: ['.', '!'] }],
  mixed: [
    { maxTokens: 320, stop: [' then', ' very', ' said'] },
    { maxTokens: 800, stop: [' because', ' why'] },
  ],
  long: [{ maxTokens: 800, stop: [] }],
};
/** Most characters in a prompt. */
const LONGEST_PROMPT = 4000;

/**
 * Requests of a burst: one or two with many prompts, since browsers open only six connections to a server. Prompts
 * differ; the long ones begin alike, so that they share blocks.
 *
 * @param contextTokens the model's context, which must hold prompt and answer. A token of English is three to five
 * characters.
 * @param turn number of the burst, so that the next one has other prompts.
 */
export function burstOf(
  count: number,
  length: BurstLength,
  contextTokens: number,
  turn: number,
): BurstGroup[] {
  const longest = Math.min(LONGEST_PROMPT, Math.floor(contextTokens * 0.7));
  const most = Math.max(1, Math.floor(contextTokens * 0.7));
  const groups = KINDS[length].map(
    ({ maxTokens, stop }): BurstGroup => ({ prompts: [], maxTokens: Math.min(maxTokens, most), stop }),
  );
  for (let i = 0; i < count; i++) {
    const isLong = length === 'long' || (length === 'mixed' && i % 3 === 0);
    groups[i % groups.length]!.prompts.push(promptOf(i + turn * count, isLong, longest));
  }
  return groups.filter(({ prompts }) => prompts.length > 0);
}

function promptOf(index: number, isLong: boolean, longest: number): string {
  const name = NAMES[index % NAMES.length]!;
  const animal = ANIMALS[(index * 7 + 3) % ANIMALS.length]!;
  const place = PLACES[(index * 3 + 1) % PLACES.length]!;
  const opening = `Once upon a time a ${animal} called ${name} lived ${place}.`.slice(0, longest);
  if (!isLong) return opening;
  const room = longest - opening.length - 1;
  return room < 40 ? opening : `${PREAMBLE.repeat(1 + (index % 8)).slice(0, room)}\n${opening}`;
}
