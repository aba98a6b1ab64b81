import type {} from '../support/mutate.js';

/** Numbers of things that the sanitizers have watched. */
export interface Figures {
  tests: number;
  /** Malformed batches, sampling parameters, options and conversions. */
  inputs: number;
  /** Changed files of weights. */
  files: number;
}

/** The parts of vitest's JSON report that are counted. */
interface Report {
  testResults: {
    assertionResults: { status: string; meta?: { tried?: { what: 'inputs' | 'files'; count: number } } }[];
  }[];
}

/** @throws where nothing was run: then nothing was found either. */
export function figuresOf(report: Report): Figures {
  const figures: Figures = { tests: 0, inputs: 0, files: 0 };
  for (const { status, meta } of report.testResults.flatMap((file) => file.assertionResults)) {
    if (status === 'passed') figures.tests++;
    if (meta?.tried) figures[meta.tried.what] += meta.tried.count;
  }
  if (figures.tests === 0) throw new Error('No test was run.');
  return figures;
}

/** Rounds of each of the driver's scenarios, from its lines "name rounds". */
export function roundsOf(output: string): Map<string, number> {
  const rounds = output.matchAll(/^(.+) (\d+)$/gm);
  return new Map(Array.from(rounds, ([, name, count]) => [name!, Number(count)]));
}

/** The section of SECURITY.md. */
export function figuresTable(figures: Figures, rounds: ReadonlyMap<string, number>): string {
  const all = [...rounds.values()].reduce((sum, count) => sum + count, 0);
  const rows: [string, number][] = [
    ['native tests with AddressSanitizer and UndefinedBehaviorSanitizer', figures.tests],
    ['malformed batches, sampling parameters, options and conversions tried on them', figures.inputs],
    [
      'changed GGUF and safetensors files read, converted and, where that went well, computed with',
      figures.files,
    ],
    [`rounds of threads in random schedules with ThreadSanitizer (${[...rounds.keys()].join(', ')})`, all],
    ['reports', 0],
  ];
  return ['| | |', '|---|---|', ...rows.map(([what, count]) => `| ${what} | ${count} |`)].join('\n');
}
