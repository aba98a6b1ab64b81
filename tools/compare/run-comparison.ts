import { writeSection } from '../document-section.js';
import { sectionOf } from '../support/machine-words.js';
import { countOf, type FlagValues, listOf, type outputFlag, type TURNS_FLAGS } from './flags.js';
import { comparedMachine } from './held-to-avx2.js';
import { ComparisonRecord, type Conditions } from './record.js';
import { type Candidate, type Named, selectOnly } from './side.js';
import { takeTurns } from './take-turns.js';

export interface ComparisonPlan<S> {
  candidates: readonly Candidate<S>[];
  columns: readonly Named<S>[];
  settings: Conditions['settings'];
}

export interface Comparison<S> {
  /** Called where something is to be measured. */
  plan(): ComparisonPlan<S>;
  /** All tables first, which are printed; with --write each report goes into its section. */
  reports: readonly ComparisonReport[];
}

/** Tables of a comparison, and where --write puts them. */
export interface ComparisonReport {
  of(record: ComparisonRecord): string;
  /** The document, named from the root of the repository. */
  document: string;
  /** The section of the document without its end: each kind of machine has its own, see sectionOf. */
  section: string;
}

type RunFlags = FlagValues<typeof TURNS_FLAGS & ReturnType<typeof outputFlag>>;

/** Measures what the flags choose, or only reads what was measured, and prints the report. */
export async function runComparison<S>(flags: RunFlags, comparison: Comparison<S>): Promise<void> {
  const record = flags.report
    ? ComparisonRecord.read(flags.output)
    : await measure(flags, () => comparison.plan());
  console.log(comparison.reports[0]!.of(record));
  if (!flags.write) return;
  for (const { of, document, section } of comparison.reports)
    writeSection(document, sectionOf(section, record.recorded.machine), of(record));
}

async function measure<S>(flags: RunFlags, makePlan: () => ComparisonPlan<S>): Promise<ComparisonRecord> {
  // Before the plan, which may write a model of gigabytes.
  const [rounds, minutes] = [countOf('rounds', flags.rounds), countOf('minutes', flags.minutes, 0)];
  const plan = makePlan();
  const chosen = selectOnly(listOf(flags.only), plan.candidates, plan.columns);
  const conditions = { machine: comparedMachine(), settings: plan.settings };
  const record = (flags.resume ? ComparisonRecord.resume : ComparisonRecord.start)(flags.output, conditions);
  const sides = [];
  for (const candidate of chosen.sides) sides.push(await candidate.open());
  await takeTurns(
    {
      sides,
      columns: chosen.columns,
      rounds,
      minutes,
      log: (line) => console.error(line),
    },
    record,
  );
  return record;
}
