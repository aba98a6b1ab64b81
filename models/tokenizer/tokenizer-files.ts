import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TokenizerFiles } from '../checkpoints/checkpoint.js';
import { TokenizerError } from './tokenizer-json.js';

/**
 * Reads tokenizer.json, tokenizer_config.json and chat_template.jinja from an engine directory or a Hugging Face
 * model's folder. Only tokenizer.json must be there. A chat template in the folder wins over one in
 * tokenizer_config.json; of several named ones in the latter, "default" is taken.
 *
 * @throws TokenizerError that names the file that is missing or is not JSON.
 */
export async function readTokenizerFiles(directory: string): Promise<TokenizerFiles> {
  const [tokenizerJson, config, template] = await Promise.all([
    readJson(join(directory, 'tokenizer.json')),
    readJson(join(directory, 'tokenizer_config.json')),
    readIfThere(join(directory, 'chat_template.jinja')),
  ]);
  if (tokenizerJson === undefined) throw new TokenizerError(`${directory} has no tokenizer.json.`);
  const tokenizerConfig = (config ?? {}) as Record<string, unknown>;
  return {
    tokenizerJson,
    tokenizerConfig,
    chatTemplate: template ?? configuredTemplate(tokenizerConfig.chat_template),
  };
}

function configuredTemplate(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return null;
  const named = value as { name?: unknown; template?: unknown }[];
  const chosen = named.find((item) => item.name === 'default');
  return typeof chosen?.template === 'string' ? chosen.template : null;
}

async function readJson(file: string): Promise<unknown> {
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TokenizerError(`${file} is not JSON: ${error instanceof Error ? error.message : error}.`, {
      cause: error,
    });
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
