import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { messageOf } from '../../base/error-text.js';
import type { TokenizerFiles } from '../checkpoints/checkpoint.js';
import { type BpeTables, parseTablesFile, TABLES_FILE_NAME } from './bpe-tables.js';
import { additionalFolder, modelTemplates, type NamedTemplates } from './named-templates.js';
import { TokenizerError } from './tokenizer-json.js';

/**
 * Reads tokenizer.json, tokenizer_config.json and the chat templates from an engine directory or a Hugging Face
 * model's folder. Only tokenizer.json is required. See modelTemplates for templates. An engine directory may hold the
 * vocabulary a second time, as tables: then tokenizer.json is not parsed.
 *
 * @throws TokenizerError that names the file that is missing or is not JSON.
 */
export async function readTokenizerFiles(
  directory: string,
): Promise<TokenizerFiles & { tables?: BpeTables | undefined }> {
  const file = join(directory, 'tokenizer.json');
  const [tokenizer, tablesText, config, template, processor, additional] = await Promise.all([
    readIfThere(file),
    readIfThere(join(directory, TABLES_FILE_NAME)),
    readJson(join(directory, 'tokenizer_config.json')),
    readIfThere(join(directory, 'chat_template.jinja')),
    readJson(join(directory, 'chat_template.json')),
    readAdditional(additionalFolder(directory)),
  ]);
  if (tokenizer === undefined) throw new TokenizerError(`${directory} has no tokenizer.json.`);
  // Parsing takes some hundredths of a second: others get their turn before it.
  await nextTurn();
  const tables = tablesText === undefined ? null : parseTablesFile(tablesText.toString(), tokenizer);
  const tokenizerConfig = (config ?? {}) as Record<string, unknown>;
  const templates = modelTemplates({
    file: template?.toString(),
    additional,
    configured: tokenizerConfig.chat_template,
    ofProcessor: (processor as { chat_template?: unknown } | undefined)?.chat_template,
  });
  return {
    tokenizerJson: tables === null ? parseJson(file, tokenizer) : tables.tokenizerJson,
    tables: tables?.tables,
    tokenizerConfig,
    ...(templates ?? { chatTemplate: null }),
  };
}

/** Files NAME.jinja of a folder, by their names. */
async function readAdditional(folder: string): Promise<NamedTemplates> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
  const files = names.filter((name) => name.endsWith('.jinja'));
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')));
  return Object.fromEntries(files.map((name, i) => [name.slice(0, -'.jinja'.length), texts[i]!]));
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
