import { queriedSeries } from './dashboard-queries.js';
import type { Answer } from './prometheus-answers.js';
import { whyAbsent } from './stock/stock-boards.js';

/** A query without data: why, where there is a reason; null where there should be some. */
export interface Unanswered {
  query: string;
  answer: Answer;
  why: string | null;
}

/** What became of a board's queries. */
export interface BoardReport {
  board: string;
  asked: number;
  answered: number;
  unanswered: readonly Unanswered[];
}

/** Divisions of this kind have no number where the server did nothing of the kind in the time asked for. */
const QUIET = 'no number: nothing of the kind happened in that time';

export function boardReport(board: string, answers: readonly (readonly [string, Answer])[]): BoardReport {
  const unanswered = answers
    .filter(([, { kind }]) => kind !== 'data')
    .map(([query, answer]) => ({ query, answer, why: reasonFor(query, answer) }));
  return { board, asked: answers.length, answered: answers.length - unanswered.length, unanswered };
}

function reasonFor(query: string, { kind }: Answer): string | null {
  if (kind === 'no number') return QUIET;
  if (kind === 'fault') return null;
  const reasons = queriedSeries(query).map(({ name }) => whyAbsent(name));
  return reasons.find((reason) => reason !== null) ?? null;
}

/** The reports as a table in Markdown, and below it each reason with its number of queries. */
export function reportText(reports: readonly BoardReport[]): string {
  const rows = reports.map(({ board, asked, answered, unanswered }) => {
    const faults = unanswered.filter(({ why }) => why === null).length;
    return `| \`${board}\` | ${asked} | ${answered} | ${asked - answered - faults} | ${faults} |\n`;
  });
  const reasons = new Map<string, number>();
  for (const { why } of reports.flatMap(({ unanswered }) => unanswered)) {
    if (why !== null) reasons.set(why, (reasons.get(why) ?? 0) + 1);
  }
  const head =
    '| board | queries | with data | empty for a reason | empty without one |\n|---|---|---|---|---|\n';
  const below = [...reasons].map(([why, count]) => `| ${count} | ${why} |\n`);
  return `${head}${rows.join('')}\n| queries | empty because |\n|---|---|\n${below.join('')}`;
}
