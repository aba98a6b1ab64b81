import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ChatAsk, ChatPlan } from '../../../src/generation/chat-plan.js';
import type { TextModel } from '../../../src/generation/text-model.js';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { defineBench } from '../bench.js';
import { compiled } from '../compiled.js';
import { MODEL_FLAG, modelOf, roundsFlag } from '../flags.js';

const NUMBERS = [1, 8, 64, 65, 129] as const;
const CHOICES = [
  { name: 'auto', mode: 'auto', isStrict: false, isInTemplate: false },
  { name: 'auto, strict functions', mode: 'auto', isStrict: true, isInTemplate: false },
  { name: 'required', mode: 'required', isStrict: false, isInTemplate: false },
  { name: 'auto, written by the template', mode: 'auto', isStrict: false, isInTemplate: true },
] as const;
/** More than any of the prompts has. */
const MAX_INPUT = 2 ** 20;
const TEMPLATE_FILE = 'chat_template.jinja';
const MESSAGES = [{ role: 'user', content: 'Do something.' }];
const FLAGS = {
  ...MODEL_FLAG,
  ...roundsFlag(5),
  before: { argument: 'DIST', default: '', help: "another build's dist/, which takes turns with this one" },
} as const;

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

/** A template that writes functions itself, in the way of Qwen's; the model's own may know of none. */
const TEMPLATE = `<|im_start|>system
You may call functions. <tools>
{%- for tool in tools or [] %}
{{ tool | tojson }}
{%- endfor %}
</tools> Call one within <tool_call></tool_call>.<|im_end|>
{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

/** Makes a folder with the files of another and this template. */
async function withTemplate(directory: string): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'skein-bench-'));
  for (const name of await readdir(directory)) {
    if (name !== TEMPLATE_FILE) await symlink(resolve(directory, name), join(path, name));
  }
  await writeFile(join(path, TEMPLATE_FILE), TEMPLATE);
  return path;
}

interface Times {
  first: number;
  later: number[];
}

/** Plans a chat with the code of one build. */
interface Side {
  plan(ask: ChatAsk): Promise<ChatPlan>;
  close(): Promise<void>;
}

/** A codec of its own knows none of the guides and words of the rows before. */
async function openSide(distribution: URL, directory: string): Promise<Side> {
  const load = (path: string) => import(new URL(path, distribution).href);
  const { ModelCodec } = (await load(
    'src/generation/model-codec.js',
  )) as typeof import('../../../src/generation/model-codec.js');
  const { planChat } = (await load(
    'src/generation/chat-plan.js',
  )) as typeof import('../../../src/generation/chat-plan.js');
  const codec = await ModelCodec.open(directory);
  const model = { codec, maxInputLen: MAX_INPUT, maxSeqLen: MAX_INPUT } as unknown as TextModel;
  await planChat(model, { messages: MESSAGES });
  return { plan: (ask) => planChat(model, ask), close: () => codec.close() };
}

/** Milliseconds of processor time of all threads so far: a busy machine changes the clock's time most. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Milliseconds of processor time of plans by each side in turns. @throws where the sides' prompts differ. */
async function timesOf(sides: readonly Side[], ask: () => ChatAsk, rounds: number): Promise<Times[]> {
  const times = sides.map((): Times => ({ first: 0, later: [] }));
  for (let round = 0; round <= rounds; round++) {
    const prompts: string[] = [];
    for (const [i, side] of sides.entries()) {
      const asked = ask();
      const startMs = processorMs();
      const { promptTokens } = await side.plan(asked);
      const tookMs = processorMs() - startMs;
      if (round === 0) times[i]!.first = tookMs;
      else times[i]!.later.push(tookMs);
      prompts.push(promptTokens.join(' '));
    }
    if (new Set(prompts).size > 1) throw new Error('The prompt of both builds should be equal; it is not.');
  }
  return times;
}

/** @param directory the model's folder. @param templated the same with the template above */
async function measure(
  builds: readonly URL[],
  { directory, templated }: { directory: string; templated: string },
  rounds: number,
): Promise<string[][]> {
  const rows: string[][] = [];
  const shown = ({ first, later }: Times) => `${median(later).toFixed(1)} ms (${first.toFixed(0)} ms)`;
  for (const count of NUMBERS) {
    const cells: string[] = [];
    for (const { mode, isStrict, isInTemplate } of CHOICES) {
      const folder = isInTemplate ? templated : directory;
      const sides = await Promise.all(builds.map((build) => openSide(build, folder)));
      // Each request has functions of its own, as if read from its body.
      const ask = () => ({
        messages: MESSAGES,
        tools: functions(count, isStrict),
        toolChoice: { mode } as const,
      });
      cells.push(...(await timesOf(sides, ask, rounds)).map(shown));
      for (const side of sides) await side.close();
    }
    rows.push([String(count), ...cells]);
  }
  return rows;
}

/** The folder with the model's tokenizer and template: what a server makes of a checkpoint. */
async function engineOf(model: string): Promise<string> {
  if (existsSync(join(model, 'engine.json'))) return model;
  const { cachedEngine } = await compiled<typeof import('../../../engine/building/engine-cache.js')>(
    'engine/building/engine-cache.js',
  );
  return (await cachedEngine({ model, precision: 'auto' })).directory;
}

/** What the number of functions in a request costs the server before the engine sees it. */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: ['tools'],
  async run(flags, { report }) {
    const model = modelOf(flags);
    const own = new URL('../../../dist/', import.meta.url);
    const before = flags.before === '' ? [] : [pathToFileURL(`${resolve(flags.before)}/`)];
    const directory = await engineOf(model);
    const templated = await withTemplate(directory);
    const rows = await measure(
      [...before, own],
      { directory, templated },
      countOf('rounds', flags.rounds),
    ).finally(() => rm(templated, { recursive: true }));
    const heads = CHOICES.flatMap(({ name }) => [...before.map(() => `${name}, before`), name]);
    report({
      section: 'tools',
      conditions: `${basename(resolve(model))}; processor time of later requests, in brackets the first`,
      lines: [markdownTable(['functions', ...heads], rows)],
    });
  },
});
