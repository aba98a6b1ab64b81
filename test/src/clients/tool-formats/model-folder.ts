import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import type { ToolFormat } from './formats.js';

interface TokenizerJson {
  added_tokens: { id: number; content: string; special: boolean }[];
  model: { vocab: Record<string, number>; merges: [string, string][] };
}

/** A tiny model with the chat template and the special tokens of another, in the place of its rarest tokens. */
export function modelFolder(folder: string, { template, specialTokens }: ToolFormat): string {
  cpSync(tinyModelPath('gqa'), folder, { recursive: true });
  const configPath = join(folder, 'tokenizer_config.json');
  const config = JSON.parse(readFileSync(configPath, 'utf8')) as object;
  writeFileSync(configPath, JSON.stringify({ ...config, chat_template: template }));
  const tokenizerPath = join(folder, 'tokenizer.json');
  const tokenizer = JSON.parse(readFileSync(tokenizerPath, 'utf8')) as TokenizerJson;
  const { vocab, merges } = tokenizer.model;
  const rarest = Object.entries(vocab)
    .sort(([, a], [, b]) => b - a)
    .slice(0, specialTokens.length);
  const gone = new Set(rarest.map(([text]) => text));
  for (const text of gone) delete vocab[text];
  tokenizer.model.merges = merges.filter((pair) => ![...pair, pair.join('')].some((text) => gone.has(text)));
  const [like] = tokenizer.added_tokens;
  for (const [i, content] of specialTokens.entries())
    tokenizer.added_tokens.push({ ...like!, id: rarest[i]![1], content });
  writeFileSync(tokenizerPath, JSON.stringify(tokenizer));
  return folder;
}
