import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { parsePythonJson } from '../../base/python-json.js';
import type { TokenizerFiles } from '../checkpoints/checkpoint.js';
import { additionalFolder, modelTemplates, type NamedTemplates } from './named-templates.js';
import { readTablesFile, TABLES_FILE_NAME } from './tables-file.js';
import type { TokenizerSourceFiles } from './tokenizer.js';
import { TokenizerError } from './tokenizer-json.js';

/** True for the path of a GGUF, which has its tokenizer itself. */
export const isGguf = (path: string): boolean => /\.gguf$/i.test(path);

/**
 * Reads tokenizer.json, tokenizer_config.json and the chat templates from an engine directory or a Hugging Face
 * model's folder, or makes them of a GGUF. Of a folder only tokenizer.json is required. See modelTemplates for templates. An engine directory may hold the
 * vocabulary a second time, as tables: then tokenizer.json is not parsed.
 *
 * @throws TokenizerError that names the file that is missing or is not JSON.
 */
export async function readTokenizerFiles(directory: string): Promise<TokenizerFiles & TokenizerSourceFiles> {
  if (isGguf(directory)) {
    // Imported here because most starts read no checkpoint.
    const { openCheckpoint } = await import('../checkpoints/open-checkpoint.js');
    return openCheckpoint(directory).tokenizer;
  }
  const [tokenizer, config, template, processor, additional] = await Promise.all([
    readTokenizer(directory),
    readJson(join(directory, 'tokenizer_config.json')),
    readIfThere(join(directory, 'chat_template.jinja')),
    readJson(join(directory, 'chat_template.json')),
    readAdditional(additionalFolder(directory)),
  ]);
  const tokenizerConfig = (config ?? {}) as Record<string, unknown>;
  const templates = modelTemplates({
    file: template?.toString(),
    additional,
    configured: tokenizerConfig.chat_template,
    ofProcessor: (processor as { chat_template?: unknown } | undefined)?.chat_template,
  });
  return {
    ...tokenizer,
    tokenizerConfig,
    ...(templates ?? { chatTemplate: null }),
  };
}

/** tokenizer.json, or the tables that were made from it. */
async function readTokenizer(
  directory: string,
): Promise<Pick<TokenizerSourceFiles, 'tokenizerJson' | 'tables'>> {
  const file = join(directory, 'tokenizer.json');
  const contents = await readIfThere(join(directory, TABLES_FILE_NAME));
  if (contents !== undefined && existsSync(file)) {
    const made = await readTablesFile(contents, file);
    if (made !== null) return made;
  }
  const tokenizerJson = await readJson(file);
  if (tokenizerJson === undefined) throw new TokenizerError(`${directory} has no tokenizer.json.`);
  return { tokenizerJson };
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
    return parsePythonJson(content.toString());
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
