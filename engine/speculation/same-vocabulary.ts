import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { option, says } from '../../base/named-text.js';
import { isGguf, readTokenizerFiles } from '../../models/tokenizer/tokenizer-files.js';
import { type Engine, EngineError } from '../building/engine.js';

/** The part of a tokenizer.json that assigns ids to texts. */
interface TokenizerFile {
  model?: { vocab?: Record<string, number> | [string, number][] };
  added_tokens?: { id: number; content: string }[];
}

/**
 * Checks that both engines give each id the same text, since a draft names tokens by their ids. Settings that change no
 * id (padding, truncation, templates) may differ.
 * @throws EngineError naming both engines and the first difference.
 */
export async function checkSameVocabulary(engine: Engine, draft: Engine): Promise<void> {
  const refuse = (why: string): never => {
    throw new EngineError(
      says`${option('draftEnginePath')} ${draft.directory} cannot draft for ${engine.directory}: ${why}; both need the same tokenizer.`,
    );
  };
  const [size, draftSize] = [engine.plan.vocabSize, draft.plan.vocabSize];
  if (draftSize !== size) refuse(`its vocabulary has ${draftSize} tokens and that of the model ${size}`);
  const [text, draftText] = [await tokenizerText(engine), await tokenizerText(draft)];
  if (text === draftText) return;
  const tokens = tokensOf(text);
  const draftTokens = tokensOf(draftText);
  for (const id of new Set([...tokens.keys(), ...draftTokens.keys()])) {
    const [token, draftToken] = [tokens.get(id), draftTokens.get(id)];
    if (token !== draftToken) refuse(`token ${id} is ${named(draftToken)} there and ${named(token)} here`);
  }
}

async function tokenizerText({ directory }: Engine): Promise<string> {
  if (!isGguf(directory)) return readFileSync(join(directory, 'tokenizer.json'), 'utf8');
  return JSON.stringify((await readTokenizerFiles(directory)).tokenizerJson);
}

function named(token: string | undefined): string {
  return token === undefined ? 'nothing' : JSON.stringify(token);
}

function tokensOf(text: string): Map<number, string> {
  const { model, added_tokens: added = [] } = JSON.parse(text) as TokenizerFile;
  const vocab = model?.vocab ?? {};
  const tokens = new Map<number, string>();
  if (Array.isArray(vocab)) for (const [id, [token]] of vocab.entries()) tokens.set(id, token);
  else for (const [token, id] of Object.entries(vocab)) tokens.set(id, token);
  for (const { id, content } of added) tokens.set(id, content);
  return tokens;
}
