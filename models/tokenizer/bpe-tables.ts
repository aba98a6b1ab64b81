import { createHash } from 'node:crypto';
import { adjustForLibrary } from './library-adjustments.js';
import { parseTokenizerJson, type TokenizerJson } from './tokenizer-json.js';

/**
 * A BPE model as two lists. They are read in a quarter of the time that an object of a hundred thousand names and the
 * splitting of as many merges take, which a start would wait for.
 */
export interface BpeTables {
  /** Texts of the vocabulary by id. */
  tokens: string[];
  /**
   * Merges by rank, each in the form that the library looks up: the JSON of [left, right]. No merge makes a special
   * token.
   */
  merges: string[];
}

/** The tokenizer-tables.json of an engine directory: tokenizer.json again, with its vocabulary and merges as tables. */
export interface TablesFile {
  version: number;
  /**
   * sha256 of the tokenizer.json that it was made from, in hex; where that has changed since, the tables are ignored.
   */
  source: string;
  /** Contents of tokenizer.json without vocabulary and merges. */
  tokenizerJson: unknown;
  tables: BpeTables;
}

/** Name of the tables file in an engine directory, beside tokenizer.json; absent where the tokenizer is no BPE. */
export const TABLES_FILE_NAME = 'tokenizer-tables.json';
const VERSION = 1;

/**
 * Makes the tables of a tokenizer.json with this text; null where its model is no BPE that tables can hold, or the text
 * is no tokenizer.json, which the tokenizer reports.
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

/** Parses a tables file; null unless it has this version and was made from exactly this tokenizer.json. */
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
  // Each id from 0 on occurs once: there are as many texts as ids, and none is missing.
  if (tokens.length !== entries.length || tokens.includes(undefined as never)) return null;
  const pairs = (merges ?? []).map((merge) => (typeof merge === 'string' ? merge.split(' ', 2) : merge));
  return { tokens, merges: pairs.map((pair) => JSON.stringify(pair)) };
}

function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}
