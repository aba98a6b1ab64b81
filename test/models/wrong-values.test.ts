import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readPeftCheckpoint } from '../../models/adapters/peft-checkpoint.js';
import { ChatTemplate } from '../../models/chat-template.js';
import { configOfHuggingFace } from '../../models/checkpoints/huggingface-config.js';
import { openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';
import { unwrapConfig } from '../../models/checkpoints/wrappers.js';
import { readTokenizerFiles, Tokenizer } from '../../models/tokenizer/index.js';
import { makeTablesFile } from '../../models/tokenizer/tables-file.js';
import { textTemplate } from '../../models/tokenizer/text-template.js';
import { parseTokenizerJson } from '../../models/tokenizer/tokenizer-json.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { MADE_MODELS, writeMadeModel } from '../support/made-models.js';
import { draws } from '../support/scale.js';
import { sentencePieceFiles } from './tokenizer/tiny-tokenizers.js';

const root = temporaryFolder('skein-wrong');

const WRONG: readonly unknown[] = [
  null,
  -1,
  1e308,
  true,
  '',
  'x'.repeat(5000),
  [],
  [null],
  [[1, 2]],
  {},
  { a: null },
];
/** Four of them for each place in turn: all kinds are at neighbouring places, and draws of ten times as many take all everywhere. */
const wrongAt = (place: number) => (draws(1) > 1 ? WRONG : WRONG.filter((_, i) => (i + place) % 3 === 0));

/** Messages of JavaScript itself about a value that it cannot use. */
const RAW =
  /Cannot (read|convert|set|destructure|access|use)|is not (a function|iterable|defined|a constructor)|undefined|\[object|Invalid (array|string)|call stack|NaN|Reduce of/i;

type Path = (string | number)[];

/** Paths to the values of a JSON value; of long lists and objects the first and the last. */
function paths(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  const some = keys.length > 30 ? [...keys.slice(0, 2), ...keys.slice(-1)] : keys;
  return [path, ...some.flatMap((key) => paths((value as never)[key], [...path, key]))];
}

function withValue(value: unknown, [key, ...rest]: Path, wrong: unknown): unknown {
  if (key === undefined) return wrong;
  const copy: unknown = Array.isArray(value) ? [...value] : { ...(value as object) };
  (copy as Record<string, unknown>)[key] = withValue((value as never)[key], rest, wrong);
  return copy;
}

/** Either it works, or one sentence says what is wrong. */
async function worksOrSays(what: string, action: () => unknown): Promise<void> {
  try {
    await action();
  } catch (error) {
    const { name, message } = error as Error;
    expect(['TokenizerError', 'CheckpointError', 'ChatTemplateError'], `${what}: ${message}`).toContain(name);
    expect(message, what).not.toMatch(RAW);
    expect(message, what).toMatch(/^[^\n]+\.$/);
    expect(message.length, what).toBeLessThan(600);
  }
}

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

function use(files: { tokenizerJson: unknown; tokenizerConfig: Record<string, unknown> }): void {
  const tokenizer = new Tokenizer(files);
  const tokens = tokenizer.encode('Hello <s> world, 123 ▁x');
  tokenizer.decode(tokens);
  for (let id = 0; id < Math.min(tokenizer.vocabSize, 300); id++) tokenizer.tokenText(id);
  new ChatTemplate('{{ bos_token }}{{ messages[0].content }}', tokenizer).render([
    { role: 'user', content: 'x' },
  ]);
  textTemplate(parseTokenizerJson(files.tokenizerJson));
  makeTablesFile(JSON.stringify(files.tokenizerJson));
}

describe('a wrong value anywhere', () => {
  it.each(['tiny-bias', 'tiny-bert-mean', 'tiny-roberta-score'])(
    'in tokenizer.json is said in a sentence: %s',
    async (name) => {
      const { tokenizerJson, tokenizerConfig } = await readTokenizerFiles(fixture(name));
      for (const [place, path] of paths(tokenizerJson).entries()) {
        for (const wrong of wrongAt(place)) {
          const changed = withValue(tokenizerJson, path, wrong);
          const what = `${path.join('.')} = ${JSON.stringify(wrong)?.slice(0, 30)}`;
          await worksOrSays(what, () => use({ tokenizerJson: changed, tokenizerConfig }));
        }
      }
    },
  );

  it('in a SentencePiece tokenizer too', async () => {
    const { tokenizerJson, tokenizerConfig } = sentencePieceFiles();
    for (const [place, path] of paths(tokenizerJson).entries()) {
      for (const wrong of wrongAt(place)) {
        const changed = withValue(tokenizerJson, path, wrong);
        await worksOrSays(path.join('.'), () => use({ tokenizerJson: changed, tokenizerConfig }));
      }
    }
  });

  it('names the field', () => {
    const { tokenizerJson, tokenizerConfig } = sentencePieceFiles();
    const changed = withValue(tokenizerJson, ['model', 'merges', 1], null);
    expect(() => new Tokenizer({ tokenizerJson: changed, tokenizerConfig })).toThrow(
      'tokenizer.json: model.merges[1] should be a list of two texts, found null.',
    );
  });

  it.each([
    ['tiny-bias', 'config.json'],
    ['tiny-llama3', 'config.json'],
    ['tiny-bert-mean', 'config.json'],
    ['tiny-bert-mean', 'tokenizer_config.json'],
    ['tiny-bias', 'tokenizer_config.json'],
    ['tiny-gemma3', 'config.json'],
    ['tiny-phi3', 'config.json'],
    ['tiny-gpt2', 'config.json'],
    ['tiny-qwen3moe', 'config.json'],
    ['tiny-mixtral', 'config.json'],
  ])('in %s/%s is said in a sentence', async (name, file) => {
    const folder = join(root, `${name}-${file}`);
    cpSync(fixture(name), folder, { recursive: true });
    const original: unknown = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    for (const [place, path] of paths(original).entries()) {
      for (const wrong of wrongAt(place)) {
        writeFileSync(join(folder, file), JSON.stringify(withValue(original, path, wrong)));
        await worksOrSays(`${path.join('.')} = ${JSON.stringify(wrong)?.slice(0, 30)}`, async () => {
          openCheckpoint(folder);
          if (file === 'tokenizer_config.json') use(await readTokenizerFiles(folder));
        });
      }
    }
  });

  it('in the config.json of a wrapper is said in a sentence', async () => {
    const made = MADE_MODELS.find(({ name }) => name === 'qwen2.5-vl')!;
    const folder = writeMadeModel(join(root, 'wrapper'), made);
    const { vision_config: _, ...config } = made.config;
    for (const [place, path] of paths(config).entries()) {
      for (const wrong of wrongAt(place)) {
        writeFileSync(join(folder, 'config.json'), JSON.stringify(withValue(config, path, wrong)));
        await worksOrSays(`${path.join('.')} = ${JSON.stringify(wrong)?.slice(0, 30)}`, () =>
          openCheckpoint(folder),
        );
      }
    }
  });

  it.each([
    'olmo3',
    'smollm3',
    'exaone4',
    'glm4',
    'granite',
    'cohere2',
    'ministral3',
    'seed-oss',
    'ernie4.5',
    'nemotron',
    'hunyuan',
    'minicpm',
    'command-r-plus',
    'apertus',
    'openelm',
    'granite4',
    'granite4-h-moe',
    'mamba2',
    'falcon-h1',
    'nemotron-h',
    'nemotron-h-moe',
  ])('in the config.json of %s is said in a sentence', async (name) => {
    const { vision_config: _, ...config } = MADE_MODELS.find((made) => made.name === name)!.config;
    for (const [place, path] of paths(config).entries()) {
      for (const wrong of wrongAt(place)) {
        const changed = withValue(config, path, wrong);
        if (typeof changed !== 'object' || changed === null) continue;
        await worksOrSays(`${path.join('.')} = ${JSON.stringify(wrong)?.slice(0, 30)}`, () => {
          const { where, fields } = unwrapConfig('config.json', changed as Record<string, unknown>);
          configOfHuggingFace(where, fields, null);
        });
      }
    }
  });

  it('in generation_config.json is said in a sentence', async () => {
    const folder = join(root, 'generation');
    cpSync(fixture('tiny-bias'), folder, { recursive: true });
    const original = { eos_token_id: [1, 2], bos_token_id: 1, temperature: 0.5 };
    for (const [place, path] of paths(original).entries()) {
      for (const wrong of wrongAt(place)) {
        writeFileSync(
          join(folder, 'generation_config.json'),
          JSON.stringify(withValue(original, path, wrong)),
        );
        await worksOrSays(path.join('.'), () => openCheckpoint(folder));
      }
    }
  });

  it("in an adapter's configuration is said in a sentence", async () => {
    const folder = join(root, 'adapter');
    cpSync(fixture('lora-patterns'), folder, { recursive: true });
    const { config } = openCheckpoint(fixture('tiny-gqa'));
    const file = join(folder, 'adapter_config.json');
    const original: unknown = JSON.parse(readFileSync(file, 'utf8'));
    for (const [place, path] of paths(original).entries()) {
      for (const wrong of wrongAt(place)) {
        writeFileSync(file, JSON.stringify(withValue(original, path, wrong)));
        await worksOrSays(path.join('.'), () => readPeftCheckpoint(folder, config, { maxRank: 8 }));
      }
    }
  });
});
