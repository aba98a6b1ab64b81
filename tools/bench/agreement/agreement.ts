import { median } from '../../support/statistics.js';

/** A prompt of test/goldens/agreement.json, with the greedy tokens of the reference. */
export interface AgreementPrompt {
  name: string;
  promptIds: number[];
  tokens: number[];
  /** Distance of the reference's two greatest logits at each step, in thousandths, rounded down: 0 is a near tie. */
  gaps: number[];
}

/** How far answers are those of the reference. */
export interface Agreement {
  prompts: number;
  /** Prompts whose tokens are all those of the reference. */
  same: number;
  /** Prompts whose first other token stands where the reference itself was near a tie. */
  nearTies: number;
  /** Tokens before the first other one, on average; all of them where none is another. */
  tokensBefore: number;
  /** Distance of the reference's two greatest logits where answers begin to differ; null where none does. */
  medianGap: number | null;
}

/** @throws where an answer is missing or has another number of tokens. */
export function agreementOf(
  prompts: readonly AgreementPrompt[],
  answers: readonly (readonly number[] | undefined)[],
): Agreement {
  const steps = prompts.map((prompt, i) => firstDifference(prompt, answers[i]));
  const gaps = steps.flatMap((step, i) => (step === null ? [] : [prompts[i]!.gaps[step]!]));
  const before = steps.reduce<number>((sum, step, i) => sum + (step ?? prompts[i]!.tokens.length), 0);
  return {
    prompts: prompts.length,
    same: prompts.length - gaps.length,
    nearTies: gaps.filter((gap) => gap === 0).length,
    tokensBefore: before / prompts.length,
    medianGap: gaps.length === 0 ? null : median(gaps) / 1000,
  };
}

function firstDifference(
  { name, tokens }: AgreementPrompt,
  answer: readonly number[] | undefined,
): number | null {
  if (answer?.length !== tokens.length)
    throw new Error(`${name}: expected ${tokens.length} tokens, found ${answer?.length ?? 'none'}.`);
  const step = tokens.findIndex((token, i) => token !== answer[i]);
  return step < 0 ? null : step;
}

/** Types of weights and KV cache. */
export interface AgreementFormat {
  precision: string;
  kvDtype: string;
}

const PRECISIONS = ['f32', 'bf16', 'int8', 'int4'] as const;
const CACHES = ['f32', 'bf16', 'int8'] as const;

/** Each precision with each type of the cache, as `formatOf` reads them. */
export const ALL_FORMATS: readonly string[] = PRECISIONS.flatMap((precision) =>
  CACHES.map((kvDtype) => `${precision}/${kvDtype}`),
);

/** Reads a format such as int4/bf16. @throws where it is none. */
export function formatOf(text: string): AgreementFormat {
  if (!ALL_FORMATS.includes(text))
    throw new Error(`--formats: expected some of ${ALL_FORMATS.join(', ')}, found '${text}'.`);
  const [precision, kvDtype] = text.split('/') as [string, string];
  return { precision, kvDtype };
}

/** The sets that are measured where none is named: amx, avx512bf16 and avx2, of which `best` is one or stands in front. */
export function defaultSets(supported: readonly string[], best: string): string[] {
  const beside = ['amx', 'avx512bf16', 'avx2'].filter((set) => supported.includes(set));
  return [...new Set(beside.includes(best) ? beside : [best, ...beside])];
}

/** What one instruction set gave in one format. */
export interface AgreementRow {
  /** As `formatOf` reads it. */
  format: string;
  isa: string;
  agreement: Agreement;
}

export const AGREEMENT_HEAD: readonly string[] = [
  'weights',
  'KV cache',
  'instructions',
  'all tokens the same',
  'others',
  'of these at near ties',
  'tokens before the first other one, mean',
  'gap there, median',
];

/** The cells of rows, by format and then as they come. */
export function agreementCells(rows: readonly AgreementRow[]): string[][] {
  const ordered = ALL_FORMATS.flatMap((name) => rows.filter(({ format }) => format === name));
  return ordered.map(({ format, isa, agreement }) => {
    const { prompts, same, nearTies, tokensBefore, medianGap } = agreement;
    const { precision, kvDtype } = formatOf(format);
    return [
      precision,
      kvDtype,
      isa,
      `${((100 * same) / prompts).toFixed(1)} %`,
      String(prompts - same),
      String(nearTies),
      tokensBefore.toFixed(1),
      medianGap === null ? '' : medianGap.toFixed(3),
    ];
  });
}
