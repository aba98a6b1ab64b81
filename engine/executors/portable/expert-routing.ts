import { type ExpertRule, expertsInReach } from '../../../network/expert-rule.js';

/** How a mixture shares out its rows: see the op `experts` of network/plan.ts. */
export interface ExpertShape extends ExpertRule {
  /** Experts of the mixture. */
  count: number;
}

/** Numbers that experts have of their own, [count] each; null or absent: none. */
export interface ExpertVectors {
  choiceBias?: Float32Array | null;
  shareScales?: Float32Array | null;
}

/**
 * Where rows go, by row and by expert:
 *
 *   used 2         row 0    row 1    row 2
 *   experts        0  3  |  2  3  |  0  2        ascending within a row
 *   shares        .7 .3  | .6 .4  | .5 .5
 *
 *   begins         0 2 2 4 6                     expert 0 has places [0, 2), expert 1 none, expert 2 [2, 4)
 *   places         0 4 | | 2 5 | 1 3             where in `experts` and `shares`; the row is place / used, rounded down
 */
export interface Routing {
  /** [rows x used] */
  experts: Int32Array;
  /** [rows x used] */
  shares: Float32Array;
  /** [experts + 1] */
  begins: Int32Array;
  /** [rows x used] */
  places: Int32Array;
}

/**
 * Chooses the experts of each row by its scores [rows x count]. Chances and shares are computed in double precision, and shares rounded to
 * float32.
 *
 * A score that is not a number comes after all others when experts are chosen, and no share of its row is a
 * number, as in a softmax over all experts: the row's sum is none either, and its request fails.
 *
 * @param own vectors [count]: see the op
 */
export function routeRows(
  scores: Float32Array,
  rows: number,
  shape: ExpertShape,
  { choiceBias = null, shareScales = null }: ExpertVectors = {},
): Routing {
  const { count, used } = shape;
  const experts = new Int32Array(rows * used);
  const shares = new Float32Array(rows * used);
  const all = Int32Array.from({ length: count }, (_, expert) => expert);
  const choose = chooserOf(shape, choiceBias, all);
  const share = shape.scoring === 'sparsemixer' ? shareAmongNear : shareOut;
  for (let row = 0; row < rows; row++) {
    const own = scores.subarray(row * count, (row + 1) * count);
    const chosen = experts.subarray(row * used, (row + 1) * used);
    choose(own, chosen);
    const ofRow = shares.subarray(row * used, (row + 1) * used);
    share(own, chosen, all, shape, ofRow);
    if (shareScales !== null) for (const [i, expert] of chosen.entries()) ofRow[i]! *= shareScales[expert]!;
  }
  return { experts, shares, ...byExpert(experts, count) };
}

/** Fills `chosen` with the numbers of a row's experts, in ascending order. */
type Choose = (scores: Float32Array, chosen: Int32Array) => void;

/** @param all the numbers of all experts */
function chooserOf(
  { count, scoring, groups }: ExpertShape,
  choiceBias: Float32Array | null,
  all: Int32Array,
): Choose {
  if (choiceBias === null && groups === undefined)
    return (scores, chosen) => chooseHighest(scores, all, chosen);
  const values = new Float64Array(count);
  const among = all.slice(0, expertsInReach(count, groups));
  return (scores, chosen) => {
    values.set(scores);
    makeChances(values, scoring);
    if (choiceBias !== null) for (const [expert, bias] of choiceBias.entries()) values[expert]! += bias;
    if (groups !== undefined) expertsOfGroups(values, groups, among);
    chooseHighest(values, among, chosen);
  };
}

/** Puts the chances of all experts in the place of their scores. */
function makeChances(values: Float64Array, scoring: ExpertShape['scoring']): void {
  if (scoring === 'sigmoid') {
    for (let expert = 0; expert < values.length; expert++) values[expert] = sigmoid(values[expert]!);
    return;
  }
  let highest = Number.NEGATIVE_INFINITY;
  for (const score of values) highest = Math.max(highest, score);
  let sum = 0;
  for (const score of values) sum += Math.exp(score - highest);
  for (let expert = 0; expert < values.length; expert++)
    values[expert] = Math.exp(values[expert]! - highest) / sum;
}

const sigmoid = (score: number) => 1 / (1 + Math.exp(-score));

/** Fills `among` with the experts of the highest groups, in ascending order. */
function expertsOfGroups(
  values: Float64Array,
  { count, used, top }: NonNullable<ExpertShape['groups']>,
  among: Int32Array,
): void {
  const size = values.length / count;
  const highest = new Int32Array(top);
  const sums = Float64Array.from({ length: count }, (_, group) => {
    const own = Int32Array.from({ length: size }, (_, i) => group * size + i);
    chooseHighest(values, own, highest);
    return highest.reduce((sum, expert) => sum + values[expert]!, 0);
  });
  const chosen = new Int32Array(used);
  chooseHighest(sums, sums.keys(), chosen);
  for (const [i, group] of chosen.entries())
    for (let expert = 0; expert < size; expert++) among[i * size + expert] = group * size + expert;
}

/** Fills `chosen` with those of `among` that have the highest values, the lower number first among equals, in ascending order. */
function chooseHighest(
  values: Float32Array | Float64Array,
  among: Iterable<number>,
  chosen: Int32Array,
): void {
  let found = 0;
  for (const number of among) {
    // Until the end they lie by their values, the highest first.
    let at = found;
    while (at > 0 && isHigher(values[number]!, values[chosen[at - 1]!]!)) at--;
    if (at === chosen.length) continue;
    if (found < chosen.length) found++;
    chosen.copyWithin(at + 1, at, found - 1);
    chosen[at] = number;
  }
  chosen.sort();
}

const isHigher = (a: number, b: number) => a > b || (Number.isNaN(b) && !Number.isNaN(a));

function shareOut(
  scores: Float32Array,
  chosen: Int32Array,
  all: Int32Array,
  shape: ExpertShape,
  shares: Float32Array,
): void {
  const { normalize, scoring, factor = 1, sumEpsilon = 0 } = shape;
  const among = normalize ? chosen : all;
  let weight = (expert: number) => sigmoid(scores[expert]!);
  if (scoring !== 'sigmoid') {
    const highest = among.reduce((most, expert) => Math.max(most, scores[expert]!), Number.NEGATIVE_INFINITY);
    weight = (expert) => Math.exp(scores[expert]! - highest);
  }
  const isWhole = scoring === 'sigmoid' && !normalize;
  const sum = isWhole ? 1 : among.reduce((total, expert) => total + weight(expert), 0) + sumEpsilon;
  const divisor = scores.some(Number.isNaN) ? Number.NaN : sum;
  for (let i = 0; i < chosen.length; i++) shares[i] = (weight(chosen[i]!) / divisor) * factor;
}

/** Shares of two experts by sparsemixer: the lower number came first among equals. */
function shareAmongNear(
  scores: Float32Array,
  chosen: Int32Array,
  _all: Int32Array,
  { jitter = 0, factor = 1 }: ExpertShape,
  shares: Float32Array,
): void {
  const [lower, upper] = [chosen[0]!, chosen[1]!];
  const first = isHigher(scores[upper]!, scores[lower]!) ? upper : lower;
  for (let i = 0; i < chosen.length; i++) {
    const without = chosen[i] === first ? -1 : first;
    shares[i] = shareOfNear(scores, chosen[i]!, without, 2 * jitter) * factor;
  }
}

/** The softmax of an expert among the scores near its own. @param without the expert that was chosen before; -1: none */
function shareOfNear(scores: Float32Array, expert: number, without: number, most: number): number {
  const highest = scores[expert]!;
  let sum = 0;
  for (let other = 0; other < scores.length; other++) {
    if (other === without) continue;
    const score = scores[other]!;
    // What is no number is not far.
    const isFar = (highest - score) / Math.max(Math.abs(score), highest) > most;
    if (!isFar) sum += Math.exp(score - highest);
  }
  return 1 / sum;
}

function byExpert(experts: Int32Array, count: number): Pick<Routing, 'begins' | 'places'> {
  const begins = new Int32Array(count + 1);
  for (const expert of experts) begins[expert + 1]!++;
  for (let expert = 0; expert < count; expert++) begins[expert + 1]! += begins[expert]!;
  const next = begins.slice();
  const places = new Int32Array(experts.length);
  for (let place = 0; place < experts.length; place++) places[next[experts[place]!]!++] = place;
  return { begins, places };
}
