import { closestName } from '../../base/did-you-mean.js';

/** Architectures that a user may expect, and the operations that they need and no executor has. */
const REASONS: readonly (readonly [name: RegExp, reason: string])[] = [
  [
    /^llama-?4/i,
    'its layers attend in chunks, scale queries by position, and mix experts that all tokens go to with those that few go to',
  ],
];

const MAX_NEAR = 3;
const MAX_SHOWN = 100;

/** A sentence on an architecture that is not among the known ones: its name, why it is not, and known names near to it. */
export function refusalOfArchitecture(where: string, name: string, known: readonly string[]): string {
  const shown = name.slice(0, MAX_SHOWN);
  const [, reason] = REASONS.find(([pattern]) => pattern.test(name)) ?? [];
  const why = reason === undefined ? '' : `: ${reason}`;
  const near = namesNear(name, known);
  const others = near.length === 0 ? '' : `; near to it are ${near.join(', ')}`;
  return `${where}: architecture ${shown} is not supported${why}${others} (docs/models.md lists all ${known.length}).`;
}

/** Known names with the same beginning, the longest first, else the one that is probably meant. */
function namesNear(name: string, known: readonly string[]): string[] {
  const shared = known
    .map((one) => ({ one, length: sharedBeginning(name.toLowerCase(), one.toLowerCase()) }))
    .filter(({ length }) => length >= 3)
    .sort((a, b) => b.length - a.length);
  if (shared.length > 0) return shared.slice(0, MAX_NEAR).map(({ one }) => one);
  const meant = closestName(name, known);
  return meant === null ? [] : [meant];
}

function sharedBeginning(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}
