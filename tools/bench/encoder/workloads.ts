import { Random } from '../../soak/random.js';

/** Texts of one kind, in the calls in which they are embedded one after the other. */
export interface Workload {
  /** Texts that a call is asked for; fewer where the calls have no room for them. */
  count: number;
  /** Tokens of each text, special ones included; null: mixed lengths. */
  length: number | null;
  calls: string[][];
}

interface WorkloadSizes {
  /** Texts of a call. */
  counts: readonly number[];
  /** Tokens of each text; null: mixed. */
  lengths: readonly (number | null)[];
  /** Most tokens of a workload. */
  mostTokens: number;
}

/** What a tokenizer puts around a text, and its number of tokens for a text. */
export interface TokenCounter {
  around: number;
  countOf(text: string): Promise<number>;
}

/** Calls of a single text; each has another text. */
const SINGLE_CALLS = 8;
const [MIXED_MIN, MIXED_MAX] = [8, 512];
const WORDS =
  'the engine serves many users of one model from a single machine while requests join and leave between two steps so that short texts never wait for long ones and every answer stays what it would be alone'.split(
    ' ',
  );

export const nameOf = ({ length, calls }: Workload): string => {
  const texts = calls[0]!.length;
  return `${texts} x ${length ?? `${MIXED_MIN} to ${MIXED_MAX}`}`;
};

export const textsOf = ({ calls }: Workload): number => calls.reduce((sum, texts) => sum + texts.length, 0);

/**
 * The same texts for each side and each run. Every word of theirs is one token, so that a text has the number of tokens that its workload says.
 * Mixed lengths are drawn with equal chances for each doubling, since short texts are more than long ones where people search.
 * @throws where the tokenizer cuts a word in two
 */
export async function makeWorkloads(sizes: WorkloadSizes, tokenizer: TokenCounter): Promise<Workload[]> {
  const random = new Random(11);
  const draw = () => Math.round(MIXED_MIN * (MIXED_MAX / MIXED_MIN) ** random.next());
  // The first word has no blank before it, with which a byte-level tokenizer may cut it otherwise.
  const textOf = (tokens: number) =>
    [WORDS[0]!, ...Array.from({ length: tokens - tokenizer.around - 1 }, () => random.pick(WORDS))].join(' ');
  const workloads = new Map<string, Workload>();
  for (const count of sizes.counts) {
    for (const length of sizes.lengths) {
      if (count === 1 && length === null) continue;
      const wanted = Array.from({ length: count === 1 ? SINGLE_CALLS : count }, () => length ?? draw());
      const lengths = fitting(wanted, sizes.mostTokens);
      const texts = lengths.map(textOf);
      for (const [i, text] of texts.entries()) await check(tokenizer, text, lengths[i]!);
      const workload = { count, length, calls: count === 1 ? texts.map((text) => [text]) : [texts] };
      // Cut to what fits, 1024 long texts may be 32 too.
      if (!workloads.has(nameOf(workload))) workloads.set(nameOf(workload), workload);
    }
  }
  return [...workloads.values()];
}

/** The first lengths whose sum is within the limit, one at least. */
function fitting(lengths: readonly number[], most: number): number[] {
  let sum = 0;
  return lengths.filter((length, i) => {
    sum += length;
    return i === 0 || sum <= most;
  });
}

async function check({ countOf }: TokenCounter, text: string, expected: number): Promise<void> {
  const found = await countOf(text);
  if (found !== expected)
    throw new Error(`A text of the bench has ${found} tokens where it should have ${expected}: '${text}'.`);
}
