import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InstructionSet } from '../../../callbacks/gpt-manager-options.js';
import { buildEngine } from '../../../engine/building/builder.js';
import type { WeightPrecision } from '../../../engine/directory/engine-directory.js';
import type { KvDtype } from '../../../kvcache/cache-shape.js';
import { countOf, listOf } from '../../compare/flags.js';
import { readGolden } from '../../support/goldens.js';
import { markdownTable } from '../../support/markdown-table.js';
import { BEST_INSTRUCTION_SET, INSTRUCTION_SETS } from '../../support/test-engine.js';
import { defineBench } from '../bench.js';
import { MODEL_FLAG, modelOf, THREADS_FLAG } from '../flags.js';
import {
  AGREEMENT_HEAD,
  type AgreementPrompt,
  type AgreementRow,
  ALL_FORMATS,
  agreementCells,
  agreementOf,
  defaultSets,
  formatOf,
} from './agreement.js';
import { answersOf, SEQUENCES } from './answers.js';

const FLAGS = {
  ...MODEL_FLAG,
  formats: {
    argument: 'LIST',
    default: ALL_FORMATS.join(','),
    help: 'precisions of weights, each with a type of the KV cache, as in int4/bf16 (default: all)',
  },
  isa: {
    argument: 'LIST',
    default: '',
    help: 'instruction sets (default: the best of this processor, and amx, avx512bf16 and avx2 where it has them)',
  },
  prompts: {
    argument: 'N',
    default: '500',
    help: 'how many of the prompts, from the first on (default 500)',
  },
  output: {
    argument: 'FILE',
    default: '',
    help: 'keep each row here as JSON; rows that it has are not measured again',
  },
  ...THREADS_FLAG,
} as const;

/**
 * Greedy tokens after many prompts compared with those of Hugging Face transformers in float32, which tools/reference/agreement.py has written
 * for SmolLM2-135M-Instruct. All requests are there at once, so that most products have the rows of many sequences.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/precision.md',
  sections: ['agreement'],
  async run(flags, { progress, report }) {
    const model = modelOf(flags);
    const threads = countOf('threads', flags.threads);
    const prompts = readGolden<AgreementPrompt>('agreement').slice(0, countOf('prompts', flags.prompts));
    const sets = setsOf(flags.isa);
    const formats = listOf(flags.formats);
    const precisions = [...new Set(formats.map((format) => formatOf(format).precision))];
    const rows: AgreementRow[] = existsSync(flags.output)
      ? (JSON.parse(readFileSync(flags.output, 'utf8')) as AgreementRow[])
      : [];
    const isMeasured = (format: string, isa: string) =>
      rows.some((row) => row.format === format && row.isa === isa);
    const folder = mkdtempSync(join(tmpdir(), 'skein-agreement-'));
    try {
      for (const precision of precisions) {
        const missing = formats
          .filter((format) => formatOf(format).precision === precision)
          .flatMap((format) => sets.map((isa) => ({ format, isa })))
          .filter(({ format, isa }) => !isMeasured(format, isa));
        if (missing.length === 0) continue;
        const enginePath = join(folder, precision);
        await buildEngine({ model, outputDirectory: enginePath, precision: precision as WeightPrecision });
        for (const { format, isa } of missing) {
          const kvDtype = formatOf(format).kvDtype as KvDtype;
          const agreement = agreementOf(
            prompts,
            await answersOf(prompts, { enginePath, isa, kvDtype, threads }),
          );
          rows.push({ format, isa, agreement });
          if (flags.output !== '') writeFileSync(flags.output, JSON.stringify(rows, null, 1));
          progress(agreementCells(rows.slice(-1))[0]!.join(', '));
        }
        rmSync(enginePath, { recursive: true, force: true });
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    const count = prompts[0]!.tokens.length;
    report({
      section: 'agreement',
      conditions: `SmolLM2-135M-Instruct, Q4_1; ${prompts.length} prompts of 8 to 200 tokens, ${count} greedy tokens each, up to ${SEQUENCES} sequences at once`,
      lines: [markdownTable([...AGREEMENT_HEAD], agreementCells(rows), 3)],
    });
  },
});

/** @throws where this machine has no such set. */
function setsOf(list: string): InstructionSet[] {
  const sets = list === '' ? defaultSets(INSTRUCTION_SETS, BEST_INSTRUCTION_SET) : listOf(list);
  const unknown = sets.find((set) => !INSTRUCTION_SETS.includes(set as InstructionSet));
  if (unknown !== undefined)
    throw new Error(`--isa: expected some of ${INSTRUCTION_SETS.join(', ')}, found '${unknown}'.`);
  return sets as InstructionSet[];
}
