import { basename, resolve } from 'node:path';
import type { TextModel } from '../../../src/generation/text-model.js';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { defineBench } from '../bench.js';
import { compiled } from '../compiled.js';
import { MODEL_FLAG, modelOf, roundsFlag } from '../flags.js';

const NUMBERS = [1, 8, 64, 65, 129] as const;
const CHOICES = [
  { name: 'auto', mode: 'auto', isStrict: false },
  { name: 'auto, strict functions', mode: 'auto', isStrict: true },
  { name: 'required', mode: 'required', isStrict: false },
] as const;
/** More than any of the prompts has. */
const MAX_INPUT = 2 ** 20;
const MESSAGES = [{ role: 'user', content: 'Do something.' }];
const FLAGS = { ...MODEL_FLAG, ...roundsFlag(5) } as const;

/** Functions as agents have them: some 700 characters of schema each. */
function functions(count: number, strict: boolean) {
  return Array.from({ length: count }, (_, i) => {
    const properties = Object.fromEntries(
      Array.from({ length: 6 }, (_, p) => [
        `field_${p}`,
        { type: p % 2 === 0 ? 'string' : 'integer', description: `What field ${p} of function ${i} is for.` },
      ]),
    );
    const parameters = {
      type: 'object',
      properties,
      required: Object.keys(properties),
      additionalProperties: false,
    };
    return { name: `function_${i}`, description: 'It does something.', parameters, strict };
  });
}

interface Times {
  first: number;
  later: number;
}

/** Milliseconds of plans with `count` functions: of the first one, and the median of later ones with the same functions. */
async function timesOf(plan: () => Promise<unknown>, rounds: number): Promise<Times> {
  const all: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const startMs = performance.now();
    await plan();
    all.push(performance.now() - startMs);
  }
  return { first: all[0]!, later: median(all.slice(1)) };
}

async function measure(directory: string, rounds: number): Promise<string[][]> {
  const { ModelCodec } = await compiled<typeof import('../../../src/generation/model-codec.js')>(
    'src/generation/model-codec.js',
  );
  const { planChat } = await compiled<typeof import('../../../src/generation/chat-plan.js')>(
    'src/generation/chat-plan.js',
  );
  const rows: string[][] = [];
  const shown = ({ first, later }: Times) => `${later.toFixed(1)} ms (${first.toFixed(0)} ms)`;
  for (const count of NUMBERS) {
    const cells: string[] = [];
    for (const { mode, isStrict } of CHOICES) {
      // A codec of its own knows none of the guides of the rows before.
      const codec = await ModelCodec.open(directory);
      const model = { codec, maxInputLen: MAX_INPUT, maxSeqLen: MAX_INPUT } as unknown as TextModel;
      await planChat(model, { messages: MESSAGES });
      const ask = { messages: MESSAGES, tools: functions(count, isStrict), toolChoice: { mode } as const };
      cells.push(shown(await timesOf(() => planChat(model, ask), rounds)));
      await codec.close();
    }
    rows.push([String(count), ...cells]);
  }
  return rows;
}

/** What the number of functions in a request costs the server before the engine sees it. */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: ['tools'],
  async run(flags, { report }) {
    const model = modelOf(flags);
    const rows = await measure(model, countOf('rounds', flags.rounds));
    report({
      section: 'tools',
      conditions: `${basename(resolve(model))}; later requests, in brackets the first`,
      lines: [markdownTable(['functions', ...CHOICES.map(({ name }) => name)], rows)],
    });
  },
});
