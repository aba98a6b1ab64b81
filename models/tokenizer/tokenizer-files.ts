import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import type { TokenizerFiles } from '../checkpoints/checkpoint.js';
import { type BpeTables, parseTablesFile, TABLES_FILE_NAME } from './bpe-tables.js';
import { TokenizerError } from './tokenizer-json.js';

/**
 * Reads tokenizer.json, tokenizer_config.json and chat_template.jinja from an engine directory or a Hugging Face
 * model's folder. Only tokenizer.json is required. A chat template in the folder wins over one in
 * tokenizer_config.json; of several named ones in the latter, "default" is taken. An engine directory may hold the
 * vocabulary a second time, as tables: then tokenizer.json is not parsed.
 *
 * @throws TokenizerError that names the file that is missing or is not JSON.
 */
export async function readTokenizerFiles(
  directory: string,
): Promise<TokenizerFiles & { tables?: BpeTables | undefined }> {
  const file = join(directory, 'tokenizer.json');
  const [tokenizer, tablesText, config, template] = await Promise.all([
    readIfThere(file),
    readIfThere(join(directory, TABLES_FILE_NAME)),
    readJson(join(directory, 'tokenizer_config.json')),
    readIfThere(join(directory, 'chat_template.jinja')),
  ]);
  if (tokenizer === undefined) throw new TokenizerError(`${directory} has no tokenizer.json.`);
  const tables = tablesText === undefined ? null : parseTablesFile(tablesText.toString(), tokenizer);
  const tokenizerConfig = (config ?? {}) as Record<string, unknown>;
  return {
    tokenizerJson: tables === null ? parseJson(file, tokenizer) : tables.tokenizerJson,
    tables: tables?.tables,
    tokenizerConfig,
    chatTemplate: template?.toString() ?? configuredTemplate(tokenizerConfig.chat_template),
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
  const content = await readIfThere(file);
  return content === undefined ? undefined : parseJson(file, content);
}

function parseJson(file: string, content: Buffer): unknown {
  try {
    return JSON.parse(content.toString());
  } catch (error) {
    throw new TokenizerError(`${file} is not JSON: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

/** Bytes of a file: decoding them at once is faster than in the pieces in which they come. */
async function readIfThere(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
