/** Amounts of work in an iteration that its time depends on. */
export interface IterationWork {
  /** Rows of generating sequences: one token for each beam, and the tokens of drafts. */
  generationRows: number;
  contextTokens: number;
  /** Pairs of a context token and a token that it attends to: see contextPairs. */
  contextPairs: number;
  /** Context tokens whose logits are computed to be returned; absent: none. */
  returnedRows?: number;
}

/** Milliseconds of an iteration, part by part; none is below 0. */
export interface IterationCost {
  /** Time that any iteration takes: the weights are read once, whatever the number of rows. */
  fixedMs: number;
  rowMs: number;
  tokenMs: number;
  pairMs: number;
  /** Extra time of a context token whose logits are returned, added to tokenMs. */
  returnedMs: number;
  /** Usual distance of an iteration's time from the sum of its parts, as a share of that sum. */
  spread: number;
  /** Most context tokens of any iteration that the cost was learned from. */
  tokensSeen: number;
  /** Most context pairs of any of these iterations. */
  pairsSeen: number;
  /** Most returned rows of any of these iterations. */
  returnedSeen: number;
}

/**
 * Number of pairs of a chunk's token with a token up to its own place, for `tokens` of them after `position`
 * others.
 */
export function contextPairs(position: number, tokens: number): number {
  return tokens * (position + tokens / 2);
}

/**
 * Number of iterations remembered of each kind, with and without contexts, so that neither kind crowds out the other.
 */
const REMEMBERED = 16;
/** Residuals above this many usual ones count less, in proportion: a pause of the machine is no property of the work. */
const USUAL_RESIDUALS = 2;
const REWEIGHTINGS = 4;
const SWEEPS = 60;
/** Keeps parts that the iterations cannot tell apart from growing against each other. */
const RIDGE = 1e-4;
const PARTS = 5;
/**
 * Order in which time is put down to the parts where iterations do not tell them apart, as the first ones do not:
 * context tokens first, so that the next chunk is rather too short than too long.
 */
const FIT_ORDER = [2, 4, 1, 3, 0];

/**
 * Learns from the latest iterations what an iteration costs:
 *
 *   ms = fixedMs + rowMs * generationRows + tokenMs * contextTokens + pairMs * contextPairs + returnedMs * returnedRows
 *
 * The fit is of least squares in relative errors, with parts of at least 0, and iterations far from the others count for
 * little. It promises only this: it follows a machine whose speed changes within REMEMBERED iterations.
 */
export class IterationCostEstimator {
  readonly #withContext: Sample[] = [];
  readonly #withoutContext: Sample[] = [];
  #counts = { withContext: 0, withoutContext: 0 };
  #cost: IterationCost | null = null;

  /** Records how long an iteration took. */
  note(work: IterationWork, ms: number): void {
    if (!(ms > 0) || !Number.isFinite(ms)) return;
    const kind = work.contextTokens > 0 ? 'withContext' : 'withoutContext';
    const samples = kind === 'withContext' ? this.#withContext : this.#withoutContext;
    const parts = [1, work.generationRows, work.contextTokens, work.contextPairs, work.returnedRows ?? 0];
    samples[this.#counts[kind]++ % REMEMBERED] = { parts, ms };
    this.#cost = null;
  }

  /** null until an iteration with context tokens was seen: before that nothing is known of their cost. */
  get cost(): IterationCost | null {
    if (this.#withContext.length === 0) return null;
    this.#cost ??= fitted([...this.#withContext, ...this.#withoutContext]);
    return this.#cost;
  }
}

interface Sample {
  /** Amounts that the parts of the cost are multiplied with, [PARTS]. */
  parts: number[];
  ms: number;
}

function fitted(samples: readonly Sample[]): IterationCost {
  const weights = samples.map(() => 1);
  let parts = weightedFit(samples, weights);
  let spread = 0;
  for (let i = 0; i < REWEIGHTINGS; i++) {
    const residuals = samples.map(({ parts: row, ms }) => Math.abs(dot(row, parts) - ms) / ms);
    spread = median(residuals);
    const limit = Math.max(USUAL_RESIDUALS * spread, Number.EPSILON);
    for (const [s, residual] of residuals.entries()) weights[s] = Math.min(1, limit / residual);
    parts = weightedFit(samples, weights);
  }
  const [fixedMs, rowMs, tokenMs, pairMs, returnedMs] = parts as [number, number, number, number, number];
  const mostSeen = (part: number) => Math.max(...samples.map(({ parts: row }) => row[part]!));
  const [tokensSeen, pairsSeen, returnedSeen] = [mostSeen(2), mostSeen(3), mostSeen(4)];
  return { fixedMs, rowMs, tokenMs, pairMs, returnedMs, spread, tokensSeen, pairsSeen, returnedSeen };
}

/** Weighted least squares in relative errors, each part at least 0, by coordinate descent. */
function weightedFit(samples: readonly Sample[], weights: readonly number[]): number[] {
  // Brings the columns to about the same size: rows are tens, pairs are millions.
  const scales = Array.from(
    { length: PARTS },
    (_, p) => Math.max(...samples.map(({ parts }) => parts[p]!)) || 1,
  );
  const products = Array.from({ length: PARTS }, () => new Array<number>(PARTS).fill(0));
  const targets = new Array<number>(PARTS).fill(0);
  for (const [s, { parts, ms }] of samples.entries()) {
    for (let p = 0; p < PARTS; p++) {
      const scaled = (weights[s]! * parts[p]!) / scales[p]! / ms;
      targets[p]! += scaled;
      for (let q = 0; q < PARTS; q++) products[p]![q]! += (scaled * parts[q]!) / scales[q]! / ms;
    }
  }
  const found = new Array<number>(PARTS).fill(0);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const p of FIT_ORDER) {
      const own = products[p]![p]! * (1 + RIDGE);
      if (own === 0) continue;
      const others = dot(products[p]!, found) - products[p]![p]! * found[p]!;
      found[p] = Math.max(0, (targets[p]! - others) / own);
    }
  }
  return found.map((value, p) => value / scales[p]!);
}

function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!;
}
