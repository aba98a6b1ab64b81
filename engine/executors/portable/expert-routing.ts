/** How a mixture shares out its rows: see the op `experts` of network/plan.ts. */
export interface ExpertShape {
  /** Experts of the mixture. */
  count: number;
  /** Experts that each row goes to. */
  used: number;
  /** Whether the shares are the softmax over the experts that a row goes to, in place of all. */
  normalize: boolean;
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
 * Chooses the experts of each row by its scores [rows x count]. Shares are computed in double precision, with the highest score subtracted, and
 * rounded to float32.
 *
 * A score that is not a number comes behind all others when experts are chosen, and no share of its row is a number, as in a softmax over all
 * experts: the row's sum is none either, and its request fails.
 */
export function routeRows(scores: Float32Array, rows: number, shape: ExpertShape): Routing {
  const { count, used, normalize } = shape;
  const experts = new Int32Array(rows * used);
  const shares = new Float32Array(rows * used);
  for (let row = 0; row < rows; row++) {
    const own = scores.subarray(row * count, (row + 1) * count);
    const chosen = experts.subarray(row * used, (row + 1) * used);
    choose(own, chosen);
    shareOut(own, chosen, normalize, shares.subarray(row * used, (row + 1) * used));
  }
  return { experts, shares, ...byExpert(experts, count) };
}

/** Fills `chosen` with the numbers of the highest scores, the lower number first among equals, in ascending order. */
function choose(scores: Float32Array, chosen: Int32Array): void {
  let found = 0;
  for (let expert = 0; expert < scores.length; expert++) {
    // Until the end they lie by their scores, the highest first.
    let at = found;
    while (at > 0 && isHigher(scores[expert]!, scores[chosen[at - 1]!]!)) at--;
    if (at === chosen.length) continue;
    if (found < chosen.length) found++;
    chosen.copyWithin(at + 1, at, found - 1);
    chosen[at] = expert;
  }
  chosen.sort();
}

const isHigher = (a: number, b: number) => a > b || (Number.isNaN(b) && !Number.isNaN(a));

function shareOut(scores: Float32Array, chosen: Int32Array, normalize: boolean, shares: Float32Array): void {
  // The highest of all is among the chosen; it is no number only where it makes no difference.
  let highest = Number.NEGATIVE_INFINITY;
  for (const expert of chosen) highest = Math.max(highest, scores[expert]!);
  let sum = scores.some(Number.isNaN) ? Number.NaN : 0;
  if (normalize) for (const expert of chosen) sum += Math.exp(scores[expert]! - highest);
  else for (const score of scores) sum += Math.exp(score - highest);
  for (let i = 0; i < chosen.length; i++) shares[i] = Math.exp(scores[chosen[i]!]! - highest) / sum;
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
