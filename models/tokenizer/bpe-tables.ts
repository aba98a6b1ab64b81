import { createHash } from 'node:crypto';
import { adjustForLibrary } from './library-adjustments.js';
import { parseTokenizerJson, type TokenizerJson } from './tokenizer-json.js';

/**
 * A BPE model as two lists. To read them takes a quarter of the time that an object of a hundred thousand names and
 * the splitting of as many merges take, and a start waits for it.
 */
export interface BpeTables {
  /** Texts of the vocabulary; a text's place is its id. */
  tokens: string[];
  /** Merges by rank, each as the library looks it up: the JSON of [left, right]. None makes a special token. */
  merges: string[];
}

/** tokenizer-tables.json of an engine directory: tokenizer.json again, with its vocabulary and merges as tables. */
export interface TablesFile {
  version: number;
  /** sha256 of the tokenizer.json that it was made from, in hex; one that was changed since counts alone. */
  source: string;
  /** Contents of tokenizer.json with no vocabulary and no merges. */
  tokenizerJson: unknown;
  tables: BpeTables;
}

/** Part of an engine directory, beside tokenizer.json; not there where the tokenizer is no BPE. */
export const TABLES_FILE_NAME = 'tokenizer-tables.json';
const VERSION = 1;

/**
 * The tables of a tokenizer.json with this text; null where its model is no BPE that they can hold, or it is no
 * tokenizer.json at all, which is for the tokenizer to say.
 */
export function makeTablesFile(tokenizerText: string): TablesFile | null {
  let json: TokenizerJson;
  try {
    json = parseTokenizerJson(JSON.parse(tokenizerText));
  } catch {
    return null;
  }
  const tables = tablesOf(json);
  if (tables === null) return null;
  const model = { ...json.model, vocab: {}, merges: [] };
  return { version: VERSION, source: sha256(tokenizerText), tokenizerJson: { ...json, model }, tables };
}

/** Null for text that is not a tables file of this version, made from exactly this tokenizer.json. */
export function parseTablesFile(text: string, tokenizerJson: Uint8Array): TablesFile | null {
  let file: Partial<TablesFile> | null;
  try {
    file = JSON.parse(text);
  } catch {
    return null;
  }
  if (file?.version !== VERSION || file.source !== sha256(tokenizerJson)) return null;
  return file as TablesFile;
}

function tablesOf(json: TokenizerJson): BpeTables | null {
  if (json.model.type !== 'BPE' || Array.isArray(json.model.vocab)) return null;
  const specialTexts = json.added_tokens.filter(({ special }) => special).map(({ content }) => content);
  const { vocab, merges } = adjustForLibrary(json, new Set(specialTexts)).model;
  const entries = Object.entries(vocab as Record<string, number>);
  const tokens: string[] = new Array(entries.length);
  for (const [text, id] of entries) tokens[id] = text;
  // Each id from 0 on once: as many texts as places, and no place empty.
  if (tokens.length !== entries.length || tokens.includes(undefined as never)) return null;
  const pairs = (merges ?? []).map((merge) => (typeof merge === 'string' ? merge.split(' ', 2) : merge));
  return { tokens, merges: pairs.map((pair) => JSON.stringify(pair)) };
}

function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}
